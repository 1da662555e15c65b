"""The program itself: its help, its exit codes, and what it imports."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import psycopg
import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError

from baton.aws.errors import FaultKind, StoreUnavailable
from baton.cli.failures import CommandFailed, told, words_of
from baton.cli.main import group
from baton.cli.sights import COUNTED, Counts
from baton.db.errors import StartupRefusal
from baton.db.states import ProcessingStatus, RegistrationStatus
from baton.documents.errors import UnknownDocument
from baton.embedded.errors import BinariesMissing, StartFailed
from baton.operator.plugin.main import program as kubectl_baton
from baton.settings.errors import SettingsError
from baton.settings.exits import Exit

COMMANDS = group.list_commands(click.Context(group))


@pytest.mark.parametrize("name", [each for each in COMMANDS if each != "demo"])
def test_every_command_explains_itself_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` works without any settings, and shows how the command is typed."""
    assert told(lambda: group.main([name, "--help"], standalone_mode=False)) == 0
    out = capsys.readouterr().out
    (example,) = [line for line in out.partition("Example")[2].splitlines() if f"baton {name}" in line][:1]
    assert example.startswith("      "), "the lines of an example are kept as they are"
    assert "\\b" not in out


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """With what each is for."""
    assert told(lambda: group.main(["--help"], standalone_mode=False)) == 0
    out = capsys.readouterr().out
    assert [each for each in COMMANDS if f"\n  {each} " not in out] == []
    assert "\\b" not in out


def test_a_command_imports_what_it_needs_and_no_more() -> None:
    """Asking for the version starts no SDK of AWS, and looking at documents no readers."""
    script = (
        "import sys; from baton.cli.failures import told; from baton.cli.main import group;"
        "told(lambda: group.main({}, standalone_mode=False));"
        "sys.exit(1 if any(each in sys.modules for each in {}) else 0)"
    )
    for arguments, unwanted in (
        (["--version"], ["baton.extraction", "pypdfium2", "baton.demo"]),
        (["show", "--help"], ["pypdfium2", "baton.runs"]),
        (["status", "--help"], ["pydantic", "httpx", "sqlalchemy.orm"]),
        (["redrive", "--help"], ["pydantic", "httpx", "sqlalchemy.orm"]),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", script.format(arguments, unwanted)], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran


_PRINTS = """
import os, click
from baton.cli import main
from baton.cli.printing import console, print_json

@click.command()
def prints():
    print_json({})
    console().print("a table")
    console(stderr=True).print("progress")
    assert os.open(os.devnull, os.O_RDONLY) > 2

main.group = prints
main.main()
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_lead_nowhere(closed: str) -> None:
    """A command prints as ever, and nothing that it opens gets a stream's number, to be written into."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, _PRINTS], capture_output=True, check=False
    )
    assert ran.returncode == 0, ran


_STRUCK_WHILE_LOADING = """
import runpy, sys

class Struck:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Struck())
runpy.run_module("baton.cli", run_name="__main__", alter_sys=True)
"""


def test_ctrl_c_while_the_program_loads_is_answered_as_ever() -> None:
    """Exit code 130 and one word, also before the first of its own lines."""
    ran = subprocess.run([sys.executable, "-c", _STRUCK_WHILE_LOADING], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "baton: stopped\n")


def _struck_while_tidying_up() -> None:
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise psycopg.ProgrammingError("can't change 'autocommit' now")
    except psycopg.Error as error:
        raise ProgrammingError("SELECT 1", {}, error) from error


def test_ctrl_c_is_ctrl_c_whatever_a_driver_makes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 130 and one word; and of several things to do, none is gone on with."""
    assert told(_struck_while_tidying_up) == 130
    assert capsys.readouterr().err == "baton: stopped\n"
    with pytest.raises(ProgrammingError) as raised:
        _struck_while_tidying_up()
    with pytest.raises(KeyboardInterrupt):
        words_of(raised.value)


def options(command: click.Command, name: str) -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of a command and of those below it."""
    for each in command.params:
        yield name, each
    if isinstance(command, click.Group):
        for below in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), below)
            assert found is not None
            yield from options(found, below)


@pytest.mark.parametrize("given", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(
    "parameter",
    [
        pytest.param(each, id=f"{name} {each.name}")
        for program in (group, kubectl_baton)
        for name, each in options(program, program.name or "")
        if isinstance(each.type, click.types.FloatParamType)
    ],
)
def test_a_number_that_is_not_finite_is_refused(parameter: click.Parameter, given: str) -> None:
    """By every option of both programs that takes a number; a wait for `nan` seconds has no end."""
    with pytest.raises(click.BadParameter):
        parameter.type.convert(given, parameter, None)


@pytest.mark.parametrize(
    "parameter",
    [
        pytest.param(each, id=f"{name} {each.name}")
        for program in (group, kubectl_baton)
        for name, each in options(program, program.name or "")
        if isinstance(each.type, click.types.StringParamType)
    ],
)
def test_a_text_that_is_none_is_refused(parameter: click.Parameter) -> None:
    """By everything of both programs that takes a text: neither a database nor a cluster could be told of it."""
    with pytest.raises(click.BadParameter):
        parameter.type.convert("caf\udce9", parameter, None)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (SettingsError(["A: wrong", "B: missing"]), Exit.SETTINGS, "baton: A: wrong\nbaton: B: missing\n"),
        (StartupRefusal(["a superuser"]), Exit.REFUSED, "baton: a superuser\n"),
        (UnknownDocument("there is none"), Exit.FAILED, "baton: there is none\n"),
        (CommandFailed("later", code=Exit.TEMPORARY), Exit.TEMPORARY, "baton: later\n"),
        (StartFailed("Postgres ended\nno space left"), Exit.FAILED, "baton: Postgres ended\nno space left\n"),
        (BinariesMissing("there is no Postgres"), Exit.FAILED, "baton: there is no Postgres\n"),
        (StoreUnavailable("away", kind=FaultKind.TIMEOUT), Exit.UNAVAILABLE, "baton: away\n"),
        (
            OperationalError("SELECT 'secret'", {}, psycopg.OperationalError("refused\nHINT: x")),
            Exit.UNAVAILABLE,
            "baton: the database does not answer: refused\n",
        ),
        (
            OperationalError("SELECT 'secret'", {}, psycopg.errors.QueryCanceled("statement timeout")),
            Exit.REFUSED,
            "baton: the database refused: statement timeout\n",
        ),
        (
            OperationalError("SELECT 'secret'", {}, psycopg.errors.LockNotAvailable("lock timeout")),
            Exit.TEMPORARY,
            "baton: the database was busy, try again: lock timeout\n",
        ),
        (FileNotFoundError(2, "No such file or directory", "x.pdf"), Exit.FAILED, "baton: x.pdf: No such file"),
        (click.UsageError("no such option"), Exit.SETTINGS, None),
        (click.exceptions.Abort(), 130, "baton: stopped\n"),
        (RuntimeError("a fault"), Exit.SOFTWARE, "baton: a fault of Baton's own: RuntimeError: a fault\n"),
    ],
)
def test_each_kind_of_failure_has_its_words_and_its_code(
    error: Exception, code: int, words: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, or one for each fault; never the statement that was sent, never a traceback on standard output."""

    def fail() -> None:
        raise error

    assert told(fail) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    if words is not None:
        assert words in captured.err
    assert "secret" not in captured.err


def test_counts_say_when_they_are_cut() -> None:
    """Sums by axis, and whether there are more."""
    counts = Counts(
        {
            (ProcessingStatus.INDEXED, RegistrationStatus.QUEUED): COUNTED,
            (ProcessingStatus.INDEXED, RegistrationStatus.REGISTERED): 1,
        }
    )
    assert counts.by_processing() == {"indexed": COUNTED + 1}
    assert counts.by_registration() == {"queued": COUNTED, "registered": 1}
    assert counts.cut


def test_the_program_can_be_started_by_its_module(tmp_path: Path) -> None:
    """`python -m baton.cli`, from any folder."""
    ran = subprocess.run(
        [sys.executable, "-m", "baton.cli", "nonsense"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 2
    assert "nonsense" in ran.stderr

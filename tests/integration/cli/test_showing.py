"""What status and show tell, to people and to machines, and what they keep from other firms."""

from pathlib import Path
from uuid import uuid4

import pytest

from baton.db.access import Role
from support.command_line import CommandLine


def test_status_counts_and_lists(desk: CommandLine, tmp_path: Path) -> None:
    """Counts by both axes, the newest first, each with its reason; of the matter that was asked for."""
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(name)
    a, b = desk.upload(tmp_path / "a.txt", tmp_path / "b.txt")
    desk.upload(tmp_path / "c.txt", matter="another")
    desk.prepare(
        "UPDATE documents SET processing_status = 'failed', processing_message = 'It is damaged.' WHERE id = :id", id=a
    )
    everything = desk.run("status", "--json")
    assert everything.code == 0
    assert everything.json["total"] == 3
    assert everything.json["processing"] == {"uploaded": 2, "failed": 1}
    assert everything.json["registration"] == {"not_requested": 3}
    matter = desk.run("status", "--matter", "Harbour lease", "--json").json
    assert {each["id"] for each in matter["documents"]} == {str(a), str(b)}
    assert matter["total"] == 2
    (attention,) = desk.run("status", "--attention", "--json").json["documents"]
    assert (attention["id"], attention["message"], attention["at_rest"]) == (str(a), "It is damaged.", True)
    people = desk.run("status")
    assert f"firm {desk.firm}: 3 documents" in people.out
    assert "It is damaged." in people.out


def test_another_firm_sees_nothing(desk: CommandLine, letter: Path) -> None:
    """Status of another firm is empty; a document of this one is not there for it."""
    (document,) = desk.upload(letter)
    other = uuid4()
    assert desk.run("status", "--firm", other, "--json").json["total"] == 0
    assert "no documents" in desk.run("status", "--firm", other).out
    for command in ("show", "reextract", "retry", "resegment", "delete", "restore"):
        more = ["--yes"] if command == "delete" else []
        ran = desk.run(command, document, "--firm", other, *more)
        assert ran.code == 1, command
        assert f"there is no document {document}" in ran.err
    assert len(desk.rows("SELECT 1 FROM ops.audit_event")) == 1


def test_show_tells_both_axes_and_the_history(desk: CommandLine, letter: Path) -> None:
    """A fresh upload: its statuses, its file, and who did what."""
    (document,) = desk.upload(letter)
    ran = desk.run("show", document)
    assert ran.code == 0
    for words in ("letter.txt", "uploaded since", "not_requested since", "processing: pending → uploaded", "counsel"):
        assert words in ran.out
    told = desk.run("show", "--json", document).json
    assert told["document"]["processing_status"] == "uploaded"
    assert {each["what"] for each in told["timeline"]} == {"processing: pending → uploaded", "document.uploaded"}
    assert [each["event"] for each in told["tickets"]] == ["document.ingest.requested"]


def test_a_name_cannot_command_the_terminal(desk: CommandLine, tmp_path: Path) -> None:
    """Escape sequences, markup and turned writing in a file's name come out as plain characters."""
    path = tmp_path / "\x1b[31mred[bold]x\u202egnp.txt"
    path.write_text("x")
    (document,) = desk.upload(path)
    for ran in (desk.run("show", document), desk.run("status")):
        assert "\x1b" not in ran.out
        assert "\u202e" not in ran.out
        assert "[bold]" in ran.out


@pytest.mark.parametrize(("role", "words"), [("postgres", "superuser"), (Role.REGISTRAR.value, "baton_member_app")])
def test_a_role_that_is_not_a_members_is_refused(
    desk: CommandLine, letter: Path, monkeypatch: pytest.MonkeyPatch, role: str, words: str
) -> None:
    """As a superuser policies would not apply, and another firm's documents would be seen: exit code 77, nothing shown."""
    (document,) = desk.upload(letter)
    monkeypatch.setenv("DATABASE_URL", desk.database.url(role))
    ran = desk.run("show", document, "--firm", uuid4())
    assert ran.code == 77
    assert words in ran.err
    assert ran.out == ""


def test_wrong_settings_are_told_line_by_line(desk: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two faults, two lines, exit code 2; no firm is a fault of usage."""
    monkeypatch.setenv("DATABASE_URL", "mysql://x")
    monkeypatch.setenv("BATON_BUCKET", "?")
    ran = desk.run("status")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 2
    monkeypatch.undo()
    assert desk.run("status").code == 2


def test_a_database_that_is_away_is_told(desk: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, exit code 69."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://baton_member_app@127.0.0.1:9/none")
    ran = desk.run("status")
    assert ran.code == 69
    assert len(ran.err.splitlines()) == 1

"""Settings are read once, in full, and every fault is named."""

import pytest

from baton.settings import loading
from baton.settings.errors import SettingsError
from baton.settings.model import Settings
from baton.settings.secret import Secret
from baton.settings.work import ScannerKind


def faults(environ: dict[str, str], *required: str) -> tuple[str, ...]:
    """The faults of an environment."""
    with pytest.raises(SettingsError) as raised:
        loading.load(environ, required=required)
    return raised.value.faults


def test_an_empty_environment_gives_the_defaults() -> None:
    """Without a variable every concern stands at its declared defaults."""
    assert loading.load({}) == Settings()


def test_every_fault_is_named_at_once() -> None:
    """Four wrong and one missing variable are five lines, each beginning with its variable."""
    found = faults(
        {
            "DATABASE_URL": "mysql://x",
            "BATON_RELAY_BATCH_SIZE": "0",
            "BATON_RELAY_SEND_TIMEOUT": "soon",
            "BATON_SCANNER": "magic",
        },
        "BATON_AGENT_URL",
    )
    assert [line.partition(":")[0] for line in found] == [
        "DATABASE_URL",
        "BATON_RELAY_BATCH_SIZE",
        "BATON_RELAY_SEND_TIMEOUT",
        "BATON_SCANNER",
        "BATON_AGENT_URL",
    ]


def test_a_fault_is_one_line() -> None:
    """A value with line breaks does not break a fault into two lines."""
    (fault,) = faults({"BATON_RELAY_BATCH_SIZE": "1\n2"})
    assert "\n" not in fault


def test_a_blank_variable_counts_as_not_set() -> None:
    """A variable set to blanks takes its default, and is missing where it is required."""
    assert loading.load({"BATON_RELAY_BATCH_SIZE": "  "}).relay.batch_size == Settings().relay.batch_size
    assert "not set" in faults({"BATON_AGENT_URL": " "}, "BATON_AGENT_URL")[0]


def test_a_program_may_have_defaults_of_its_own() -> None:
    """What is set stands; what is blank counts as not set here, too."""
    quiet = {"BATON_LOG_LEVEL": "warning"}
    assert loading.load({}, unless_set=quiet).logs.level == "warning"
    assert loading.load({"BATON_LOG_LEVEL": " "}, unless_set=quiet).logs.level == "warning"
    assert loading.load({"BATON_LOG_LEVEL": "debug"}, unless_set=quiet).logs.level == "debug"


def test_requiring_an_unknown_variable_is_a_programming_error() -> None:
    """A program cannot ask for what is no setting."""
    with pytest.raises(KeyError):
        loading.load({}, required=("BATON_NO_SUCH",))


@pytest.mark.parametrize(
    ("variable", "raw"),
    [
        ("DATABASE_URL", "mysql://baton:hunter2@db/baton"),
        ("DATABASE_URL", "postgresql://baton:hunter2@db/ba ton"),
        ("DATABASE_URL", "postgresql://baton:x@hunter2@db/baton"),
        ("DATABASE_URL", "postgresql://baton:x@hunter2/@db/baton"),
        ("BATON_AGENT_TOKEN", "hunter2\nX-Other: 1"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2é"),
    ],
)
def test_no_fault_repeats_a_secret(variable: str, raw: str) -> None:
    """What is wrong with a secret is said without the secret."""
    assert "hunter2" not in "".join(faults({variable: raw}))


def test_settings_can_be_shown_without_their_secrets() -> None:
    """The repr of all settings holds no secret."""
    loaded = loading.load(
        {
            "DATABASE_URL": "postgres://baton:hunter2@db/baton",
            "BATON_AGENT_TOKEN": "hunter2",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
        }
    )
    assert "hunter2" not in repr(loaded)
    assert loaded.database.url == Secret("postgresql+psycopg://baton:hunter2@db/baton")


def test_units_and_words_are_understood() -> None:
    """Durations, sizes, flags and closed words are read with their units and in any case."""
    loaded = loading.load(
        {
            "BATON_RUN_DEADLINE": "15m",
            "BATON_RUN_ARTIFACT_MAX_BYTES": "2MiB",
            "BATON_CREATE_QUEUES": "No",
            "BATON_SCANNER": "ClamD",
            "BATON_CLAMD_ADDRESS": "tcp:scanner:3310",
        }
    )
    assert loaded.runs.deadline == 900
    assert loaded.runs.artifact_max_bytes == 2_097_152
    assert loaded.queues.create is False
    assert loaded.extraction.scanner is ScannerKind.CLAMD


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"BATON_RESULTS_QUEUE": "results.fifo"}, "BATON_RESULTS_QUEUE"),
        ({"BATON_INGEST_DEAD_QUEUE": "dead"}, "BATON_INGEST_DEAD_QUEUE"),
        ({"BATON_INGEST_QUEUE": "one.fifo", "BATON_REGISTRAR_QUEUE": "one.fifo"}, "BATON_INGEST_QUEUE"),
        ({"AWS_ACCESS_KEY_ID": "key"}, "AWS_SECRET_ACCESS_KEY"),
        ({"BATON_CONSUMER_HEARTBEAT": "40", "BATON_QUEUE_VISIBILITY": "60"}, "BATON_CONSUMER_HEARTBEAT"),
        ({"BATON_RELAY_BACKOFF_INITIAL": "60", "BATON_RELAY_BACKOFF_MAX": "1"}, "BATON_RELAY_BACKOFF_MAX"),
        ({"BATON_RUN_RETRY_INITIAL": "2h"}, "BATON_RUN_RETRY_MAX"),
        ({"BATON_RECONCILE_BACKOFF_MAX": "1s"}, "BATON_RECONCILE_BACKOFF_MAX"),
    ],
)
def test_settings_that_cannot_stand_together_are_refused(environ: dict[str, str], named: str) -> None:
    """Values that are valid alone and wrong together are one fault."""
    (fault,) = faults(environ)
    assert fault.startswith(f"{named}: ")


def test_a_service_link_of_kubernetes_is_explained() -> None:
    """A port that Kubernetes itself wrote is told apart from a wrong one."""
    (fault,) = faults({"BATON_HEALTH_PORT": "tcp://10.0.0.1:8080"})
    assert "enableServiceLinks" in fault


def test_a_misspelt_setting_is_noticed_but_no_fault() -> None:
    """A near miss is reported with the name it resembles; Kubernetes's own variables are not."""
    environ = {"BATON_INGEST_QEUE": "x", "BATON_RELAY_PORT_8080_TCP": "tcp://x", "BATON_ELSEWHERE": "y"}
    loading.load(environ)
    assert loading.near_misses(environ) == (("BATON_INGEST_QEUE", "BATON_INGEST_QUEUE"),)


def test_an_environment_can_be_made_again_from_settings() -> None:
    """A child process that is given `environment(settings)` loads the same settings."""
    environ = {
        "DATABASE_URL": "postgresql://baton:hunter2@db/baton",
        "BATON_CREATE_QUEUES": "false",
        "BATON_REFERENCE_AGENT_MISBEHAVE": "true",
        "BATON_SCANNER": "clamd",
        "BATON_RELAY_SEND_TIMEOUT": "2.5",
        "BATON_HEALTH_PORT": "0",
        "BATON_RUN_HOURLY_BUDGET": "7",
        "BATON_RECONCILE_GRACES": "request_stalled=10m, run_lapsed=90",
    }
    loaded = loading.load(environ)
    written = loading.environment(loaded)
    assert loading.load(written) == loaded
    assert set(written) == set(environ)


def test_every_variable_is_declared_once() -> None:
    """No two fields read the same variable."""
    names = [each.variable for each in loading.every_setting()]
    assert len(names) == len(set(names))


def test_every_secret_variable_is_kept_out_of_sight() -> None:
    """A field is marked secret exactly when its reader gives a Secret."""
    samples = {"DATABASE_URL": "postgresql://u@h/d", "BATON_DATABASE_DIRECT_URL": "postgresql://u@h/d"}
    for each in loading.every_setting():
        if "url" not in each.variable.lower() or each.variable in samples:
            try:
                value = each.parse(samples.get(each.variable, "sample"))
            except ValueError:
                continue
            assert isinstance(value, Secret) == each.secret, each.variable


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument the process's own environment is read."""
    monkeypatch.setenv("BATON_RELAY_BATCH_SIZE", "17")
    assert loading.load().relay.batch_size == 17

"""A run that was met once is known, within bounds and over restarts."""

from pathlib import Path
from uuid import UUID

from baton.agent.ledger import RunLedger


def _runs(count: int, *, start: int = 1) -> list[UUID]:
    return [UUID(int=number) for number in range(start, start + count)]


def test_runs_in_work_and_finished_runs_are_known() -> None:
    """From the moment it is begun a run is known; one that was forgotten is not."""
    ledger = RunLedger(capacity=10)
    first, second, third = _runs(3)
    ledger.begin(first)
    ledger.finish(second)
    ledger.begin(third)
    ledger.forget(third)
    assert [ledger.knows(run) for run in (first, second, third)] == [True, True, False]


def test_memory_is_bounded_and_work_is_never_forgotten() -> None:
    """Of the finished the oldest go; what is in work stays, however many come after it."""
    ledger = RunLedger(capacity=10)
    working, *finished = _runs(31)
    ledger.begin(working)
    for run in finished:
        ledger.begin(run)
        ledger.finish(run)
    assert ledger.knows(working)
    assert [ledger.knows(run) for run in finished] == [False] * 20 + [True] * 10


def test_finished_runs_survive_a_restart_and_runs_in_work_do_not(tmp_path: Path) -> None:
    """What died with the process may be started again; what was delivered is not."""
    path = tmp_path / "runs"
    finished, working = _runs(2)
    with RunLedger(capacity=10, path=path) as ledger:
        ledger.finish(finished)
        ledger.begin(working)
    with RunLedger(capacity=10, path=path) as again:
        assert again.knows(finished)
        assert not again.knows(working)


def test_a_file_cut_off_by_a_crash_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Broken lines are passed over, and the next start has a clean file."""
    path = tmp_path / "runs"
    first, second = _runs(2)
    path.write_bytes(f"{first}\n\xff\xfe{{}}\n{str(second)[:20]}".encode("latin-1"))
    with RunLedger(capacity=10, path=path) as ledger:
        assert ledger.knows(first)
        assert not ledger.knows(second)
    assert path.read_text().splitlines() == [str(first)]


def test_the_file_is_bounded_too(tmp_path: Path) -> None:
    """However many runs finish, the file holds at most twice what is remembered."""
    path = tmp_path / "runs"
    with RunLedger(capacity=10, path=path) as ledger:
        for run in _runs(200):
            ledger.finish(run)
            assert len(path.read_text().splitlines()) <= 21
    with RunLedger(capacity=10, path=path) as again:
        assert [again.knows(run) for run in _runs(200)][-10:] == [True] * 10

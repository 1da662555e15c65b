"""`baton demo`, as a newcomer runs it."""

import signal
import sys
from pathlib import Path

import pytest

from support.demos import running_demo
from support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.timeout(420)
def test_every_document_ends_at_its_verdict_whoever_is_killed(state_folder: Path) -> None:
    """Relay, extractor, registrar and settler die at work; the end is as written down, and nothing is left behind."""
    with running_demo(state_folder, "--json", "--patience", "360") as demo:
        assert demo.end(timeout=400) == 0, demo.lines
    summary = demo.summary()
    assert summary["ok"] is True
    first = [each for each in summary["documents"] if each["batch"] == 1]
    assert len(first) >= 15
    assert len(summary["documents"]) > len(first)
    for each in summary["documents"]:
        assert each["processing_status"] == each["expected"]["processing_status"], each
        assert each["registration_status"] == each["expected"]["registration_status"], each
        assert each["message"] or (each["processing_status"], each["registration_status"]) == ("indexed", "registered")
        assert bool(each["applied_effects"]) == (each["registration_status"] != "not_requested"), each
    assert [each["process"] for each in summary["killed"]] == ["relay ingest", "extractor", "registrar", "settler"]
    assert all(each["seen_at_work"] for each in summary["killed"])
    assert all(summary["starts"][each["process"]] >= 2 for each in summary["killed"])
    assert all(each["ok"] and each["rows"] for each in summary["once"])
    assert "kill -9 extractor" in demo.lines
    assert [each["what"] for each in summary["mishaps"]] == [
        "a row was edited by hand",
        "a message was deleted in its consumer's hand",
        "a notification was removed",
        "a consumer was stopped",
        "an agent went dark",
    ]
    assert all(each["ok"] for each in summary["mishaps"]), summary["mishaps"]
    assert "fan_out_missing" in summary["mishaps"][0]["found"]
    assert {each["batch"] for each in summary["documents"]} == {1, 2, 3}
    assert demo.left() == []


@pytest.mark.timeout(420)
def test_without_a_recogniser_scans_end_with_a_person(state_folder: Path) -> None:
    """No tesseract on the path: scans need review, with the reason, and the demo says so and still succeeds."""
    environ = {"PATH": str(Path(sys.executable).parent)}
    with running_demo(state_folder, "--json", "--no-kill", "--patience", "360", environ=environ) as demo:
        assert demo.end(timeout=400) == 0, demo.lines
    summary = demo.summary()
    assert summary["scans_readable"] is False
    scans = [each for each in summary["documents"] if each["processing_status"] == "needs_review"]
    assert {each["name"] for each in scans} >= {"Court Order.pdf", "Affidavit of Anita Deshmukh.pdf"}
    assert all(each["message"] for each in scans)
    assert "tesseract is not installed" in demo.lines


@pytest.mark.timeout(200)
def test_one_document_elsewhere_is_a_failure(state_folder: Path) -> None:
    """Time is too short for the scans to be read: exit code 1, and the summary says which are elsewhere."""
    with running_demo(state_folder, "--json", "--no-kill", "--patience", "10") as demo:
        assert demo.end(timeout=180) == 1, demo.lines
    summary = demo.summary()
    assert summary["ok"] is False
    assert summary["finished"] is False
    assert [each["name"] for each in summary["documents"] if not each["ok"]]
    assert demo.left() == []


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_demo_cleans_up(state_folder: Path, number: signal.Signals) -> None:
    """Once is enough, and impatience does no harm: no process, no folder, and an exit code that tells."""
    with running_demo(state_folder, "--plain", "--json") as demo:
        demo.wait_for("batch 1: uploading", timeout=150)
        demo.process.send_signal(number)
        demo.wait_for("stopping")
        demo.process.send_signal(number)
        assert demo.end(timeout=60) == 130
    assert demo.left() == []


@pytest.mark.timeout(300)
def test_what_a_killed_demo_started_dies_with_it(state_folder: Path) -> None:
    """`kill -9` of the demo itself leaves no process; its folder goes with the next demo."""
    with running_demo(state_folder, "--json") as demo:
        demo.wait_for("batch 1: uploading", timeout=150)
        assert demo.members().keys() >= {"extractor", "registrar", "settler", "agent"}
        demo.process.kill()
        demo.end(timeout=30)
    wait_until(lambda: not [each for each in demo.left() if each.startswith("process")], 30, what="every child's end")
    [left] = state_folder.iterdir()
    with running_demo(state_folder, "--json") as following:
        wait_until(lambda: not left.exists(), 60, what="the folder's end")
        following.process.send_signal(signal.SIGINT)
        following.end(timeout=90)
    assert following.left() == []


@pytest.mark.timeout(200)
def test_a_folder_that_was_kept_can_be_looked_into(state_folder: Path) -> None:
    """`--keep` keeps it and says how to look inside; `--open` starts its servers again."""
    with running_demo(state_folder, "--json", "--keep", "--no-kill", "--patience", "10") as demo:
        demo.end(timeout=180)
    [folder] = state_folder.iterdir()
    assert f"baton demo --open {folder}" in demo.lines
    assert {"postgres", "aws", "logs", "case-file"} <= {each.name for each in folder.iterdir()}
    with running_demo(state_folder, "--open", str(folder)) as opened:
        wait_until(lambda: "Ctrl-C stops the servers" in opened.printed, 60, what="its servers")
        opened.process.send_signal(signal.SIGINT)
        assert opened.end(timeout=60) == 0
    assert "psql" in opened.printed
    assert "export BATON_QUEUE_VISIBILITY=6" in opened.printed, "else the doctor takes the demo's queues for wrong"
    assert folder.exists()

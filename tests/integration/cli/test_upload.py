"""Uploading from the command line: files and folders, again and again, side by side, and what fails."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.aws.objects import Store
from baton.cli.identities import matter_id
from support.command_line import CommandLine
from support.waiting import wait_until


def test_a_file_arrives_whole(desk: CommandLine, letter: Path) -> None:
    """Row, bytes, ticket and audit event, under the person's name."""
    (document,) = desk.upload(letter)
    (row,) = desk.rows("SELECT * FROM documents")
    assert (row.id, row.firm_id, row.processing_status) == (document, desk.firm, "uploaded")
    assert row.matter_id == matter_id("Harbour lease", firm=desk.firm)
    assert (row.name, row.content_type, row.size_bytes) == ("letter.txt", "text/plain", 25)
    stored = desk.account.client("s3").get_object(Bucket=desk.bucket, Key=row.object_key)["Body"].read()
    assert stored == letter.read_bytes()
    (event,) = desk.rows("SELECT event, actor FROM ops.audit_event")
    assert tuple(event) == ("document.uploaded", "counsel")
    (ticket,) = desk.rows("SELECT id, event_type FROM ops.document_ingest_outbox")
    assert ticket == (row.ingest_ticket_id, "document.ingest.requested")


def test_results_can_be_piped(desk: CommandLine, letter: Path, tmp_path: Path) -> None:
    """What arrived stands on standard output, what failed on standard error."""
    missing = tmp_path / "missing.pdf"
    ran = desk.run("upload", letter, missing, "--matter", "m")
    (row,) = desk.rows("SELECT id FROM documents")
    assert ran.out == f"uploaded  {row.id} {letter}\n"
    assert ran.err == f"FAILED    {missing}: No such file or directory\n"


def test_who_stops_listening_stops_nothing(desk: CommandLine, tmp_path: Path) -> None:
    """A pipe that is closed after the first result, as `head` does: the other files are uploaded all the same."""
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(str(number))
    child = desk.start("upload", tmp_path, "--matter", "m", "--parallel", "1")
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()
    child.stdout = None
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert len(desk.rows("SELECT 1 FROM documents WHERE processing_status = 'uploaded'")) == 8


def test_running_it_again_changes_nothing(desk: CommandLine, letter: Path) -> None:
    """The second run says what was there, and writes nothing at all."""
    first = desk.upload(letter)
    ran = desk.run("upload", letter, "--matter", "Harbour lease", "--json")
    assert ran.code == 0
    assert [(UUID(each["id"]), each["result"]) for each in ran.json["documents"]] == [(first[0], "already_there")]
    assert len(desk.rows("SELECT 1 FROM documents")) == 1
    assert len(desk.rows("SELECT 1 FROM ops.audit_event")) == 1
    assert len(desk.rows("SELECT 1 FROM ops.document_ingest_outbox")) == 1


def test_an_upload_that_broke_off_goes_on_where_it_is(desk: CommandLine, letter: Path) -> None:
    """A row without bytes, as a killed run leaves it, is taken up by the next run and not left behind."""
    (document,) = desk.upload(letter)
    with desk.database.preparer.begin() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = 'replica'")
        connection.exec_driver_sql("UPDATE documents SET processing_status = 'pending', ingest_ticket_id = NULL")
        connection.exec_driver_sql("DELETE FROM ops.document_ingest_outbox")
    (row,) = desk.rows("SELECT object_key FROM documents")
    desk.account.client("s3").delete_object(Bucket=desk.bucket, Key=row.object_key)
    assert desk.upload(letter) == [document]
    (row,) = desk.rows("SELECT processing_status FROM documents")
    assert row.processing_status == "uploaded"


def test_the_same_file_twice_at_once_is_one_document(desk: CommandLine, letter: Path) -> None:
    """Two processes upload one file: both succeed, and there is one of everything."""
    children = [desk.start("upload", letter, "--matter", "Harbour lease") for _ in range(2)]
    ended = [(child.communicate(timeout=60), child.returncode) for child in children]
    assert [code for _, code in ended] == [0, 0], ended
    assert len(desk.rows("SELECT 1 FROM documents")) == 1
    assert len(desk.rows("SELECT 1 FROM ops.audit_event")) == 1
    assert len(desk.rows("SELECT 1 FROM ops.document_ingest_outbox")) == 1
    assert len(desk.rows("SELECT 1 FROM ops.document_status_transition")) == 1


def test_a_file_that_changes_replaces_nobodys_bytes(
    desk: CommandLine, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two upload one file; it changes after one of them has hashed it and the other has finished: told, and what was
    handed over stays what it is.
    """
    before = letter.read_bytes()
    put = Store.put

    def late(self: Store, key: str, body: Any, **options: Any) -> str:
        other = desk.start("upload", letter, "--matter", "Harbour lease")
        other.communicate(timeout=60)
        assert other.returncode == 0
        letter.write_bytes(before.upper())
        return put(self, key, body, **options)

    monkeypatch.setattr(Store, "put", late)
    ran = desk.run("upload", letter, "--matter", "Harbour lease")
    assert ran.code == 1
    assert "changed while it was being uploaded" in ran.err
    (row,) = desk.rows("SELECT object_key, processing_status FROM documents")
    assert row.processing_status == "uploaded"
    stored = desk.account.client("s3").get_object(Bucket=desk.bucket, Key=row.object_key)["Body"].read()
    assert stored == before


def test_a_file_that_fails_does_not_stop_the_others(desk: CommandLine, letter: Path, tmp_path: Path) -> None:
    """One that is missing and one that is no file are told; the good one between them arrives; the exit code is 1."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ran = desk.run("upload", tmp_path / "missing.pdf", letter, pipe, "--matter", "m", "--json")
    assert ran.code == 1
    results = [(Path(each["path"]).name, each["result"]) for each in ran.json["documents"]]
    assert results == [("missing.pdf", "failed"), ("letter.txt", "uploaded"), ("pipe", "failed")]
    assert "missing.pdf" in ran.err
    assert "not a regular file" in ran.err
    assert [row.name for row in desk.rows("SELECT name FROM documents")] == ["letter.txt"]


@pytest.mark.parametrize(
    "kind", ["", "pdf", "text/plain\nx: y", "bild/größe", "a/" + "b" * 300, "a/b/c", "text/pl ain"]
)
def test_what_is_no_content_type_is_wrong_usage(desk: CommandLine, letter: Path, kind: str) -> None:
    """Before anything is written: no store would take it, and the row would keep it."""
    ran = desk.run("upload", letter, "--matter", "m", "--content-type", kind)
    assert ran.code == 2, ran.err
    assert desk.rows("SELECT 1 FROM documents") == []


def test_a_content_type_has_its_parameters(desk: CommandLine, letter: Path) -> None:
    """As they are given."""
    assert desk.run("upload", letter, "--matter", "m", "--content-type", "text/plain; charset=utf-8").code == 0
    assert desk.rows("SELECT content_type FROM documents")[0].content_type == "text/plain; charset=utf-8"


def test_a_file_that_cannot_be_read_is_named_once(desk: CommandLine, tmp_path: Path) -> None:
    """With the reason, and the path not again in it."""
    path = tmp_path / "missing.pdf"
    ran = desk.run("upload", path, "--matter", "m")
    assert ran.err.splitlines() == [f"FAILED    {path}: No such file or directory"]


def test_a_blank_firm_is_nobodys(desk: CommandLine, letter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--firm "$UNSET"` is never taken for the firm of the environment."""
    monkeypatch.setenv("BATON_FIRM", str(desk.firm))
    for blank in ("", "  "):
        ran = desk.run("upload", letter, "--matter", "m", "--firm", blank)
        assert ran.code == 2, ran.err
    assert desk.rows("SELECT 1 FROM documents") == []


def test_a_folder_keeps_its_names(desk: CommandLine, tmp_path: Path) -> None:
    """Files in folders carry the folders in their names, so that two of one name are two; hidden ones are left out."""
    case = tmp_path / "case"
    for name in ("a/letter.txt", "b/letter.txt", ".git/config", "b/.DS_Store"):
        path = case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one and the same")
    desk.upload(case)
    assert sorted(row.name for row in desk.rows("SELECT name FROM documents")) == ["a/letter.txt", "b/letter.txt"]


def test_names_that_are_no_text_are_carried_as_far_as_they_go(desk: CommandLine, tmp_path: Path) -> None:
    """A name that is no UTF-8, one with a line break and one that is too long."""
    names = [b"caf\xe9.txt", "Umlaut ä\n.txt".encode(), b"x" * 250 + b".txt"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
    ran = desk.run("upload", tmp_path, "--matter", "m")
    assert ran.code == 0, ran.err
    assert "caf?.txt" in {row.name for row in desk.rows("SELECT name FROM documents")}
    again = desk.run("upload", tmp_path, "--matter", "m", "--json")
    assert (again.code, len(again.json["documents"])) == (0, 3), "each is told of, whatever its path is"


def test_a_deleted_document_does_not_come_back_by_itself(desk: CommandLine, letter: Path) -> None:
    """The file of a deleted document is refused, with what to do."""
    (document,) = desk.upload(letter)
    assert desk.run("delete", document, "--yes").code == 0
    ran = desk.run("upload", letter, "--matter", "Harbour lease")
    assert ran.code == 1
    assert f"baton restore {document}" in ran.err


def test_two_firms_have_a_document_each(desk: CommandLine, letter: Path) -> None:
    """The same file of two firms is two documents, and neither sees the other's."""
    (mine,) = desk.upload(letter)
    other = uuid4()
    ran = desk.run("upload", letter, "--matter", "Harbour lease", "--firm", other, "--json")
    assert ran.code == 0
    theirs = ran.json["documents"][0]["id"]
    assert theirs != str(mine)
    ran = desk.run("show", theirs)
    assert ran.code == 1
    assert ran.err == f"baton: there is no document {theirs}\n"


def test_a_store_that_is_away_is_told_by_the_exit_code(
    desk: CommandLine, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, and the shell is told that trying again later may help."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("BATON_AWS_MAX_ATTEMPTS", "1")
    ran = desk.run("upload", letter, "--matter", "m")
    assert ran.code == 69, ran.err
    assert desk.rows("SELECT 1 FROM documents") == []


def test_waiting_ends_when_patience_does(desk: CommandLine, letter: Path) -> None:
    """With nobody at work the documents still move: exit code 75, and where they stand."""
    ran = desk.run("upload", letter, "--matter", "m", "--wait", "--patience", "0", "--json")
    assert ran.code == 75
    assert ran.json["at_rest"] is False
    assert ran.json["documents"][0]["now"]["processing_status"] == "uploaded"


def test_waiting_sees_documents_come_to_rest(desk: CommandLine, letter: Path) -> None:
    """A document that ends in failure while it is followed: told with its reason, exit code 1."""
    child = desk.start("upload", letter, "--matter", "m", "--wait", "--patience", "60")
    try:
        wait_until(lambda: desk.rows("SELECT 1 FROM documents WHERE processing_status = 'uploaded'"), timeout=30)
        desk.prepare("UPDATE documents SET processing_status = 'failed', processing_message = 'It is damaged.'")
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 1, err
    assert "It is damaged." in err
    assert "It is damaged." in out


def test_ctrl_c_ends_it_in_order(desk: CommandLine, letter: Path) -> None:
    """An interrupt while following: one word, exit code 130, no traceback."""
    child = desk.start("upload", letter, "--matter", "m", "--wait")
    try:
        wait_until(lambda: desk.rows("SELECT 1 FROM documents WHERE processing_status = 'uploaded'"), timeout=30)
        child.send_signal(signal.SIGINT)
        try:
            _, err = child.communicate(timeout=30)
        except subprocess.TimeoutExpired:  # Python loses one that comes while it tidies up; a person asks again
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert err.splitlines()[-1] == "baton: stopped"
    assert "Traceback" not in err

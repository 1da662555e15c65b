"""The embedded SQS and S3: what a stop and a kill keep, and who can reach it."""

from pathlib import Path

from baton.embedded.ministack import EmbeddedAws
from baton.embedded.ports import answers
from support.aws_accounts import new_account


def test_an_orderly_stop_keeps_everything(state_folder: Path) -> None:
    """Queues, messages and objects are there again after a restart, at the same address."""
    with EmbeddedAws(state_folder) as server:
        account, endpoint = new_account(server), server.endpoint
        url = account.client("sqs").create_queue(QueueName="kept")["QueueUrl"]
        account.client("sqs").send_message(QueueUrl=url, MessageBody="here")
        account.client("s3").create_bucket(Bucket="kept")
        account.client("s3").put_object(Bucket="kept", Key="k", Body=b"bytes")
        server.stop()
        assert not server.running
        server.start()
        assert server.endpoint == endpoint
        (message,) = account.client("sqs").receive_message(QueueUrl=url)["Messages"]
        assert message["Body"] == "here"
        assert account.client("s3").get_object(Bucket="kept", Key="k")["Body"].read() == b"bytes"
    assert not answers(int(endpoint.rpartition(":")[2]))


def test_a_kill_keeps_the_objects(state_folder: Path) -> None:
    """After a kill the objects are there; the server starts again on the same folder."""
    with EmbeddedAws(state_folder) as server:
        account = new_account(server)
        account.client("s3").create_bucket(Bucket="kept")
        account.client("s3").put_object(Bucket="kept", Key="k", Body=b"bytes")
        server.kill()
        server.start()
        assert account.client("s3").get_object(Bucket="kept", Key="k")["Body"].read() == b"bytes"


def test_the_environment_leads_to_one_account(state_folder: Path) -> None:
    """The settings name the endpoint of each service, and keep out the user's own AWS configuration."""
    with EmbeddedAws(state_folder) as server:
        environ = server.environ("123456789012")
        assert environ["AWS_ENDPOINT_URL_SQS"] == environ["AWS_ENDPOINT_URL_S3"] == server.endpoint
        assert environ["AWS_ACCESS_KEY_ID"] == "123456789012"
        assert environ["AWS_CONFIG_FILE"] == environ["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"
        assert environ["AWS_EC2_METADATA_DISABLED"] == "true"

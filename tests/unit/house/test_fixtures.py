"""The fixtures that every other test stands on."""

import pytest
from sqlalchemy import text

from support.aws_accounts import AwsAccount, new_account
from support.databases import Cluster, Database
from support.waiting import wait_until

ROLES = (
    "baton_member_app",
    "baton_relay",
    "baton_extractor",
    "baton_registrar",
    "baton_settler",
    "baton_observer",
    "baton_reconciler",
    "baton_support",
)


def test_each_workload_logs_in_without_power(database: Database) -> None:
    """Every workload's role can log in, is no superuser, and does not bypass row-level security."""
    for role in ROLES:
        with database.engine(role).connect() as connection:
            row = connection.execute(
                text("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
            ).one()
        assert tuple(row) == (role, False)


def test_a_database_is_its_tests_own(cluster: Cluster, database: Database) -> None:
    """What one test writes, the next does not see."""
    with database.preparer.begin() as connection:
        connection.execute(text("CREATE TABLE app.left_behind ()"))
    other = cluster.create()
    try:
        with other.preparer.connect() as connection:
            assert connection.execute(text("SELECT to_regclass('app.left_behind')")).scalar_one() is None
    finally:
        other.close()


def test_a_copy_keeps_the_rights_on_the_database(cluster: Cluster, database: Database) -> None:
    """Rights on the database itself are those of the migrated template, too."""
    with database.preparer.connect() as connection:
        rights = [
            connection.execute(
                text(
                    "SELECT array_agg((grantee, privilege_type)::text ORDER BY grantee, privilege_type) "
                    "FROM pg_database, aclexplode(datacl) WHERE datname = :name"
                ),
                {"name": name},
            ).scalar_one()
            for name in (cluster.template, database.name)
        ]
    assert rights[0] is not None
    assert rights[0] == rights[1]


def test_the_clock_moves(database: Database) -> None:
    """Moving the clock changes what every role reads, counted from the server's clock."""
    for seconds in (3600, -60, 0):
        database.move_clock(seconds)
        with database.engine("baton_relay").connect() as connection:
            ahead = connection.execute(
                text("SELECT extract(epoch FROM (SELECT app.clock()) - clock_timestamp())")
            ).scalar_one()
        assert float(ahead) == pytest.approx(seconds, abs=5)


def test_accounts_see_nothing_of_each_other(aws: AwsAccount) -> None:
    """A queue and a bucket of one account do not exist in another."""
    other = new_account(aws.server)
    aws.client("sqs").create_queue(QueueName="own")
    aws.client("s3").create_bucket(Bucket="own")
    assert len(aws.client("sqs").list_queues().get("QueueUrls", [])) == 1
    assert other.client("sqs").list_queues().get("QueueUrls", []) == []
    assert other.client("s3").list_buckets()["Buckets"] == []


def test_waiting_returns_the_answer() -> None:
    """The waiter hands back the first true answer."""
    answers = iter([0, None, 7])
    assert wait_until(lambda: next(answers)) == 7


def test_waiting_ends() -> None:
    """A condition that never holds fails the test, saying what was last seen."""
    with pytest.raises(AssertionError, match=r"the moon did not hold within 0.05 s; last seen: 0"):
        wait_until(lambda: 0, 0.05, what="the moon")

"""What a deleted resource left is taken back by the installation that wrote it, and by nobody else."""

from typing import Any, cast

from baton.db.access import Role
from baton.operator import ghosts
from baton.operator.api import Api, ApiMissing
from baton.operator.vocabulary import Plural
from baton.reconcilers import owner, windows
from baton.reconcilers.results import Guard
from baton.reconcilers.windows import Declared
from support.databases import Database

GONE = "legal/main 0198c0de-0000-7000-8000-000000000001"
MINE = "legal/second 0198c0de-0000-7000-8000-000000000002"


class Server:
    """An API server with one resource."""

    def resource(self, plural: Plural, namespace: str, name: str) -> dict[str, Any]:
        """It, or that there is none."""
        if (namespace, name) != ("legal", "main"):
            raise ApiMissing("none")
        return {"metadata": {"uid": "0198c0de-0000-7000-8000-000000000001"}}


def test_only_what_this_installation_wrote_is_suspected_and_taken_back(database: Database) -> None:
    """Ownership and suspension go together; another's suspension stays."""
    with database.engine(Role.RECONCILER).begin() as connection:
        assert owner.claim(connection, GONE)
        windows.declare(connection, [Declared(Guard.SUSPENDED, "moving house", until=None)], set_by=GONE)
        windows.declare(connection, [Declared(Guard.SUSPENDED, "theirs", until=None)], set_by="far/away 3")
        for _ in range(2):
            ghosts.remember(connection, GONE, installation="here")
        ghosts.remember(connection, "far/away 3", installation="there")
        assert ghosts.suspects(connection, besides=MINE, installation="here") == [GONE]
        assert ghosts.suspects(connection, besides=GONE, installation="here") == []
        ghosts.lay(connection, GONE)
        assert ghosts.suspects(connection, besides=MINE, installation="here") == []
        assert owner.claim(connection, MINE)
        held = windows.held(connection)
        assert held is not None
        assert held.reason == "theirs"


def test_only_the_api_server_says_that_a_resource_is_gone() -> None:
    """Another one of its name is another one; what is no name of a resource proves nothing."""
    api = cast("Api", Server())
    assert not ghosts.is_gone(api, GONE)
    assert ghosts.is_gone(api, GONE.replace("0001", "0009"))
    assert ghosts.is_gone(api, MINE)
    assert not ghosts.is_gone(api, "reconciler of the night shift")

"""A process that dies at a chosen step of its work on the database."""

from typing import Any

from sqlalchemy import Connection, Engine, event


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Blows before a statement, or before a commit, counted from the beginning; nothing is held any more by then."""

    def __init__(self, engine: Engine) -> None:
        self.left = 0
        self.reached: list[str] = []
        event.listen(engine, "before_cursor_execute", self._before)
        event.listen(engine, "commit", self._commit)

    def light(self, steps: int) -> None:
        """Blow at the step of that number; at none, where it is 0."""
        self.left, self.reached = steps, []

    def _before(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        self._burn(connection, statement)

    def _commit(self, connection: Connection) -> None:
        self._burn(connection, "COMMIT")

    def _burn(self, connection: Connection, what: str) -> None:
        self.reached.append(what)
        self.left -= 1
        if self.left == 0:
            # The server undoes what the process had open, but only once it notices that nobody is there any more: whoever
            # comes next might meet the locks still, and leave the document to a later pass.
            connection.connection.rollback()
            raise Crash

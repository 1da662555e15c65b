"""A process that dies at a chosen step of its work on the database."""

from typing import Any

from sqlalchemy import Engine, event


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Blows before a statement, or before a commit, counted from the beginning."""

    def __init__(self, engine: Engine) -> None:
        self.left = 0
        self.reached: list[str] = []
        event.listen(engine, "before_cursor_execute", self._before)
        event.listen(engine, "commit", self._commit)

    def light(self, steps: int) -> None:
        """Blow at the step of that number; at none, where it is 0."""
        self.left, self.reached = steps, []

    def _before(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self._burn(statement)

    def _commit(self, _connection: Any) -> None:
        self._burn("COMMIT")

    def _burn(self, what: str) -> None:
        self.reached.append(what)
        self.left -= 1
        if self.left == 0:
            raise Crash

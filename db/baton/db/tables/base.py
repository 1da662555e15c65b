"""Column shorthands and the one metadata object that every table hangs on."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKeyConstraint, MetaData, text
from sqlalchemy.types import UserDefinedType

#: Constraint names are part of the interface: database errors are mapped to typed errors by them.
metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

#: The database's clock; the only "now" that decides anything.
CLOCK = text("app.clock()")


class TSVector(UserDefinedType[str]):
    """Postgres' ``tsvector``; written by ``to_tsvector`` only, never bound from Python."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Name the type in DDL."""
        return "TSVECTOR"


def instant(name: str, *, required: bool = False, clock: bool = False) -> Column[object]:
    """A ``timestamptz``; ``clock`` defaults it to the database's clock at insertion."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=not (required or clock),
        server_default=CLOCK if clock else None,
    )


def one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    """Closed set as text with a CHECK: enum comparison is not leakproof, so it loses its index under RLS."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def of_document() -> ForeignKeyConstraint:
    """Foreign key to the document *with its firm*: foreign keys ignore RLS, so the firm must be in the key.

    For the same reason every unique key of a firm-scoped table names ``firm_id``, often as its last column (look-ups go
    by document): a violation would otherwise tell one firm what another has.
    """
    return ForeignKeyConstraint(["firm_id", "document_id"], ["documents.firm_id", "documents.id"])

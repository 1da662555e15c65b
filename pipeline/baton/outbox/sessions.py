"""Connections that belong to one purpose for long: to notify, and to listen."""

from __future__ import annotations

from typing import Any, TypeAlias

import psycopg
from sqlalchemy import Engine

Driver: TypeAlias = psycopg.Connection[Any]


def own_session(engine: Engine) -> Driver:
    """A connection that has left the engine's pool, in autocommit; whoever asked for it closes it."""
    pooled_connection = engine.raw_connection()
    driver = pooled_connection.driver_connection
    if not isinstance(driver, psycopg.Connection):
        pooled_connection.close()
        raise TypeError("the engine must be one of psycopg")
    pooled_connection.detach()
    try:
        driver.rollback()
        driver.autocommit = True
    except psycopg.Error:
        driver.close()
        raise
    return driver

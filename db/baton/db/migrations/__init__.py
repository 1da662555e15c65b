"""Alembic's environment and the versions.

Expand first, contract in a later release: the previous release's processes are still running when a version is applied.
A version is frozen text and never reads the declared schema.
"""

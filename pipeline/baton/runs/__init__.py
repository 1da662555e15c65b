"""An agent's runs: minting, dispatch, invoking, settling, sweeping.

Here belongs the life of a run from its first row to delivered, rejected or expired, with the
budget and breaker that hold dispatch back. Settlers write no document; applying a delivered run
belongs to `record`.
"""

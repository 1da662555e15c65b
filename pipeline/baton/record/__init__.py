"""Applying a delivered run to the Record, exactly once.

Here belong the appliers by result schema, intents under a firm's policy, claims, inbox items and
the parts of understanding. How a run came to be delivered does not belong here.
"""

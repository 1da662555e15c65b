"""Tickets: what a status change announces, and the relay that sends it.

Here belong the keys and generations of tickets, their insertion, claim, settling and life marks,
the relay of each lane and its wake-up. What a ticket's receiver does does not belong here.
"""

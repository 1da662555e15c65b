"""The consumer of the registrar queue.

Here belongs routing a ticket by its event type to dispatch or apply, and nothing that either
of them decides.
"""

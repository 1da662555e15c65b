"""What the tests share: servers for the session, a database for each test, waiting.

Here belong fixtures' machinery and things that more than one component's tests need. Builders of
one component's data belong beside its tests.
"""

"""A real Kubernetes API server for tests: built once, started for a session, gone without a trace.

Here belong building, starting and asking it. What is asked of it does not belong here.
"""

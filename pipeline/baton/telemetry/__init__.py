"""Spans, metrics, logs and the health endpoint.

Here belong the closed registries of span names and metrics, and everything that knows
OpenTelemetry or the Prometheus client. What is worth telling is decided by the callers; telling
it can never fail or slow their work.
"""

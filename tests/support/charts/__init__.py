"""The chart, as tests and generators read it.

What is generated of it (the README, the closed lists in its schema, the dashboard, the copies of definitions and rights)
is written by ``python -m support.charts.generate`` and held by a test.
"""

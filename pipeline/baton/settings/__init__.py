"""The one place that reads the environment.

Here belong the frozen configuration of each concern, its units and defaults, and the check that
names every fault at once. Decisions made from settings do not belong here, nor does any I/O.
"""

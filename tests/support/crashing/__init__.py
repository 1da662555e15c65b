"""Dying anywhere: what ends a worker of the pipeline at a named point, and plays the rest of the pipeline to its end.

Here: the points and hooks, the workers driven one step at a time, the scenes, and what must hold at a scene's end.
Not here: tests.
"""

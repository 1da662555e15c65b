"""One module for each discrepancy: its condition, since when it counts, the index that shows it, and its repair.

Here belongs what can disagree, and what puts it right by calling a service. Which row is asked before which is the
business of ``baton.reconcilers.classification``; carrying repairs out, and limiting them, that of the engine.
"""

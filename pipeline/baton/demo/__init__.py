"""The demonstration: everything on one machine, watched while it works.

Here belong its acts, the live table and the closing summary. It uses the processes that a
cluster would deploy; no behaviour of theirs belongs here.
"""

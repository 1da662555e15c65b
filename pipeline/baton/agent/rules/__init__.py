"""What the reference agent knows: pure functions from the text of a document to the effects of a purpose.

Here belong patterns, scores and their tables, one kind of finding in each module. No network, no clock, no state: the
same text and context give the same effects, so that a repeated pass has the same intent keys.
"""

"""From the bytes of a file to the text of its pages.

Here belong the readers, which run in child processes of their own, the scanner for infected
files, and the worker that records the outcome. Judging the text does not belong here.
"""

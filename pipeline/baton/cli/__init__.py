"""The `baton` program.

Here belong commands, their arguments, their output for people and machines, and exit codes. A
command reads, asks a library, and reports; decisions belong to the libraries.
"""

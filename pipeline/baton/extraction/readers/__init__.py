"""One module per type of file, each of which turns an open file into the text of its pages.

Here belongs what knows a format. All of it runs inside a confined child process and may be
killed at any moment; nothing here starts a thread, opens the network or knows the database.
"""

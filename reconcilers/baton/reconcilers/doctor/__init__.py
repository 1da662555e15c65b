"""Examines what Baton stands on, and says of everything that is wrong what to do about it.

Here belong looks at the database, its roles and sessions, the queues and the bucket, and at whether anybody works. All
of it is reading, by a role that cannot write. What is wrong with a single document does not belong here: that is
explained.
"""

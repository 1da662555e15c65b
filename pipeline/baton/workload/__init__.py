"""What every process of the pipeline stands on, from its start to its end.

Here belong watching it, waiting for a database that is fit for its role, and its connections, queues
and bucket, so that all processes begin, wait and end alike. What a process does does not belong here.
"""

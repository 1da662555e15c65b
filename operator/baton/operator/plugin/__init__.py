"""`kubectl baton`: what people do with the operator, by the rights that they have in the cluster.

Here belong the commands, and how the API server and the operator are reached: the first through kubectl alone, with
whatever credentials it knows to use; the second through a port that kubectl forwards, with the caller's token. What
changes something goes through the resources. Nothing here knows a database, a queue or a password.
"""

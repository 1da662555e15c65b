"""The reference agent: an outside party that happens to live in this repository.

Here belong its HTTP server, its rules over text, and the ways in which it can be told to
misbehave. It knows the contract and nothing else of the pipeline: no database, no queue, no AWS.
"""

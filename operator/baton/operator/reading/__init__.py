"""The read-only HTTP API of the operator: what stands in a database behind a resource, as ids and states.

Here belong who may ask, what is answered, and the server. Nothing here writes, whatever is asked, and no document's
content leaves: what is answered is listed field by field. What changes something goes through the resources.
"""

"""The machine of a document's registration status.

Here belong its edges, the request for registration, retries and failures. Talking to an agent
(`runs`) and applying an answer (`record`) do not belong here.
"""

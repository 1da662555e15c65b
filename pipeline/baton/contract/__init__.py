"""The contract between the pipeline and an agent: what is said over HTTP, and what is left behind as an artifact.

Here belong the shapes of the invocation, the answer and the artifact, the names of the result schemas, the limits on
all of them, and the one way each is parsed from bytes that nobody vouches for. Nothing here does any input or output,
knows a database, or decides what an effect means for the Record: that is the appliers' part.
"""

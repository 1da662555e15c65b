"""A real node for tests: the product's image on it, real servers beside it, gone without a trace.

Here belong building, starting, asking and harming it. What is asked of it does not belong here.
"""

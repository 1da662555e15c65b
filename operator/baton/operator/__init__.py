"""The edge to Kubernetes: resources in, loops of :mod:`baton.reconcilers` woken, conditions out.

Here belong watching, the resources' specs and statuses, secrets by reference, the Lease, and the one thread of each
resource. What is wrong with a document, and what is done about it, does not belong here: that is decided in
``baton.reconcilers`` and kept in Postgres. Only this package knows Kubernetes, and only ``edge`` knows kopf.
"""

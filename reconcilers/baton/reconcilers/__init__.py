"""Loops that compare each document with its desired outcome and repair what disagrees.

Here belong the discrepancies (one condition each), their repairs, the ledger of repairs and the
loop that runs them. What a healthy document does next does not belong here: that is the business
of the packages in the pipeline. Nothing here knows Kubernetes.
"""

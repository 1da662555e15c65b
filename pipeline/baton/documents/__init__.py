"""What is done to a document, and the machine of its processing status.

Here belong finalizing an upload, re-extraction, re-segmentation, deletion and restoring, with
their audit trail. The registration axis does not belong here; neither axis writes the other.
"""

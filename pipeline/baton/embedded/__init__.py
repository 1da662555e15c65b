"""Real servers as child processes of one machine: Postgres, SQS and S3, and Baton's own.

Here belong finding their binaries, starting, stopping, killing and restarting them in a folder
of their own, and making sure that none outlives its parent. What runs on them does not belong
here: nothing of the pipeline is imported.
"""

"""SQS and S3: clients, queues, objects and bucket notifications.

Here belongs everything that knows boto3: making clients, naming and creating queues, sending and
receiving, reading and presigning objects, typed errors. What a message means does not belong
here.
"""

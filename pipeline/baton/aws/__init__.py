"""SQS and S3: clients, queues, objects and bucket notifications.

Here belongs everything that knows botocore: making clients, naming and creating queues, sending and
receiving, reading and presigning objects, typed errors. What a message means does not belong
here.
"""

"""The loop that every queue consumer shares.

Here belong receiving, marking a received batch, keeping messages invisible while they are worked
on, order within a document, attempts, and stopping without stranding a message. What a message
means to a document or a run does not belong here: handlers say so.
"""

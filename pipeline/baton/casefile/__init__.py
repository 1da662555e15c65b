"""Documents of one invented litigation matter, and files made to do harm.

Here belong the makers of sample and hostile files, with the outcome each must have. Reading
files does not belong here.
"""

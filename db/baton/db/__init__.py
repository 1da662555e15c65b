"""The database: schema, edges of the state machines, roles, policies, routines, migrations.

Here belongs what is true of the database whoever connects to it, with the engines that connect
and the self-check that refuses a wrong connection. Statements of one component's work do not
belong here: they stand beside that component.
"""

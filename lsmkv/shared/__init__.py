"""One store, many processes: any number of processes of a machine open the same directory.

The process that holds ``LOCK`` is the *owner*: its store is open as any other, and it commits what
the others, its *members*, send.  Members read the files themselves.  ``shared_db.py`` has the
handle, which is an owner or a member as it comes; ``docs/how/processes.md`` has the whole.
"""

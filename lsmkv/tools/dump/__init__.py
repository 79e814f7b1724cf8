"""``lsmkv dump``: the content of a store's files, record by record or byte by byte.

``sources`` finds the files.  ``logs`` and ``tables`` turn each into the records of ``records``, and
``annotated_logs`` and ``annotated_tables`` into pieces that cover every byte once.  ``text`` and
``jsonlines`` print both.  Nothing here writes to a store.
"""

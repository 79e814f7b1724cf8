"""``lsmkv dump``: what stands in a store's files, record by record or byte by byte.

``sources`` names the files.  ``logs`` and ``tables`` turn each into the records of ``records``;
``annotated_logs`` and ``annotated_tables`` into pieces that cover every byte once.  ``text`` and
``jsonlines`` say how either is printed.  Nothing here writes.
"""

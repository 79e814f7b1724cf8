"""``lsmkv rescue``: finds stores, makes sound ones of those that are damaged, says what to do."""

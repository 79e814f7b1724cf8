"""``lsmkv trace``: the operations on a store, one by one or in sum."""

"""``lsmkv trace``: what a store was asked for, operation by operation or in sum."""

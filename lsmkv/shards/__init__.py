"""Shard sets: many read-only databases in an object store, one for each range of keys."""

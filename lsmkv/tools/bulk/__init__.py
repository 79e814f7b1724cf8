"""``lsmkv bulk``: shard sets, built on several processes or machines, and their versions."""

"""Building shard sets from sorted runs, and publishing them."""

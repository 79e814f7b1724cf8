"""``lsmkv top``: what a live store does, as its owner publishes it."""

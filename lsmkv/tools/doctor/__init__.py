"""``lsmkv doctor``: what is installed, and whether a store works in a directory."""

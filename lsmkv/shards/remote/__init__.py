"""Reading stores in object storage: an env, its caches, and the protocols."""

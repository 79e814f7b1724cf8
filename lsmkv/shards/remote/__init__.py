"""Reading stores that lie in object storage: an env, its caches, and the protocols."""

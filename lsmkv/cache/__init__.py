"""A cache on disk: values by keys, with expiry, tags and a limit on its size."""

"""A cache on disk: values of Python by keys of Python, with expiry, tags and a limit on its size."""

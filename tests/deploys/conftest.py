"""``shop.py`` is no test: it opens a store when it is imported."""

collect_ignore = ["shop.py"]

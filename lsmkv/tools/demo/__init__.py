"""``lsmkv demo``: what a filter saves, measured on real keys.

``keys.py`` makes the keys that exist and the ones that do not, ``measure.py`` loads stores and
counts what lookups read, ``report.py`` tells people what it means, and ``run.py`` puts them
together.
"""

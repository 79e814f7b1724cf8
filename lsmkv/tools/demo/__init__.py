"""``lsmkv demo``: what a filter saves, measured on real keys.

``command.py`` is the command, and ``run.py`` the measurement, from keys to figures: ``keys.py``
makes the keys that exist and the absent ones, and ``measure.py`` loads stores and counts what Gets
read.  ``report.py`` prints the figures, and ``reading.py`` makes sentences of them.
"""

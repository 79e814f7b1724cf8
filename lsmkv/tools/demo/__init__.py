"""``lsmkv demo``: what a filter saves, measured on real keys.

``command.py`` is the command, and ``run.py`` the measurement, from keys to figures: ``measure.py``
loads stores and counts what Gets read, and ``timing.py`` times them.  ``report.py`` prints the
figures, ``reading.py`` makes sentences of them, and ``page.py`` writes both into an HTML page.
"""

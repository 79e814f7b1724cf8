"""``lsmkv filter-lab``: what Gets would read under other filters.

``gets`` chooses the keys, ``replay`` asks the filters that each of the ``settings`` would have
built, ``heat`` tells where the wasted reads are, ``verdict`` says in a sentence what would pay,
``experiment`` runs it all on one store, and ``report`` prints it.
"""

"""``lsmkv filter-lab``: what Gets would read under other filters.

:mod:`lsmkv.filter_lab` replays them.  ``gets`` chooses the keys, ``own`` loads a custom policy,
``verdict`` says in a sentence what would pay, ``experiment`` runs it all on one store, and
``report`` prints it.
"""

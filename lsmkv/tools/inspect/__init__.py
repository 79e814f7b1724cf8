"""``lsmkv inspect``: a store's levels, tables, Gets and history as a page in the browser.

``api`` answers every view with plain data.  ``server`` sends it to the page as JSON, and ``lsmkv
report`` puts it into a file.  Nothing here writes to the store.
"""

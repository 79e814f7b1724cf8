"""The playground: pages in which the engine runs in the browser, in WebAssembly.

``make playground`` builds it from ``static`` and from this package; ``lsmkv playground`` serves
what was built.  ``engine`` answers the pages' questions with plain data, in a worker of the page.
"""

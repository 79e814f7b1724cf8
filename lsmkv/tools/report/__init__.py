"""``lsmkv report``: the inspector's page as one HTML file, with its data in it and no server."""

"""Filters: small summaries that answer *no* for certain, so that a block need not be read."""

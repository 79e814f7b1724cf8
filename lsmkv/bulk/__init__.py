"""Building a whole store at once from pairs in any order."""

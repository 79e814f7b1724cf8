"""A course in storage engines: labs whose parts, written by students, run in the real engine."""

"""A student's store: the engine with the parts in it that the student has written."""

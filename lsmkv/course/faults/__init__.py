"""Broken variants of each lab's functions, of which a student finds one."""

"""Lua scripts: their sources, what runs them, and their libraries in ``lua/``."""

"""The engine: one process and one store, from the log and the tables to the open database."""

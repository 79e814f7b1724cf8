"""The labs: for each, what is checked, and the drawing of its bytes."""

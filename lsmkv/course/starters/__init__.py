"""The files that students begin with: one for each lab, whose functions are to be written."""

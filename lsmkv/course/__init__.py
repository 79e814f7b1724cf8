"""A course in storage engines: labs in which the student's code runs inside the real engine."""

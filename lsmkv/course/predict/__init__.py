"""Numbers that a student predicts from their own data before the code runs."""

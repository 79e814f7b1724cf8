"""Tools for a teacher: grades, reports, questions to ask in person, and a kit for a class."""

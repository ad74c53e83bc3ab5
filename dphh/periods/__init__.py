"""Periods: a unit that is all rows of one user in one day, week, month, quarter or year."""

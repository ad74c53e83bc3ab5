"""The unit of a promise: all rows of one user, or all rows of one user in one period."""

"""A plan as SQL, to be read: what a run would execute, and the specification row by row."""

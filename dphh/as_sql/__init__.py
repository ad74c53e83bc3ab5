"""A plan as SQL to read: the queries that a run would execute."""

"""A plan's queries as text, free: `plan.sql()` and `--sql`.

Here belongs what prints steps; which steps a verb runs stands beside the verb's run.
May import: registry, mechanisms, reader. Begin at `text.plan_sql`.
"""

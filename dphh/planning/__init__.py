"""Tools to use before anything is spent: check, compare, schedule, rehearse, prices."""

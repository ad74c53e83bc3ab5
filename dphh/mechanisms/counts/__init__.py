"""How many users hold each of given items, with intervals."""

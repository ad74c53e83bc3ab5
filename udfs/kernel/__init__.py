"""Whole users in arrays: gathered, numbered, their distinct keys bounded and summed.

Here belongs what every rule needs and no rule's weights. May import: `text/`. Begin at
`contributions.py`, for gathering at `gathering.py`.
"""

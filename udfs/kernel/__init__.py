"""Whole users in arrays: gathered, their words numbered, their distinct keys bounded and summed.

Here belongs what every rule needs and no rule's weights. May import: `arrays.py`. Begin at
`contributions.py`, for gathering at `gathering.py`.
"""

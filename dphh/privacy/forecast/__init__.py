"""The forecast ladder's arithmetic: pure functions of public arrays (`docs/forecast.md`).

What is public here: releases below, and noised counts of this level. No function reads a row of
anybody's, so nothing in this folder can cost privacy: it says how to spend what was priced.
"""

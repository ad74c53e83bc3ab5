"""Kinds of levels: one file for each mechanism's."""

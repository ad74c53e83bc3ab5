"""How numbers, names and options are spelled in messages, and the checks of plain options.

Here belongs what every other folder may need to say; it imports nothing but errors. Begin at
`options.py`.
"""

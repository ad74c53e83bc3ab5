"""How numbers, names and options are spelled in messages, and the checks of plain options.

Here belongs what any other folder may need to print or to refuse. May import: errors. Begin at
`options.py`.
"""

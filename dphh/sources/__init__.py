"""What a corpus may be: formats, lakes, and how a table is read as a stream."""

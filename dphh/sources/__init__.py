"""The kinds of corpora: file formats, lake tables, and how a table is read as a stream."""

"""Where a corpus's rows are: files of several formats, stores, tables of other libraries."""

"""Which files a view, a query or a frame reads, and whether it makes each row from one row."""

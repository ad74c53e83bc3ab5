"""`ngrams`: DPNE as in the paper; in `forecast/` the default method; `ladder/` serves both."""

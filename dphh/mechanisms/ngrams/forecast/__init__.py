"""The forecast ladder: two rounds a length, with noise shared by what is likely to be found."""

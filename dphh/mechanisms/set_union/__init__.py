"""Set union: items that many users hold, by DPSU's weighted Gaussian and methods built on it."""

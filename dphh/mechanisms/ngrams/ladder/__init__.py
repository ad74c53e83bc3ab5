"""The n-gram ladder in public numbers: rungs, forecasts, classes, and absent grams."""

"""N-grams, rung by rung: DPNE as the paper has it; `forecast/` is the default ladder."""

"""`items`: by set union, by a list of public words, or over a domain that is known."""

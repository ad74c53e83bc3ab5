"""What texts are made of: what of it is seen, and what programs take for more than a text."""

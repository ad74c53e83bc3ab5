"""`counts`: how many users hold each of given items; and the counts of what another verb found."""

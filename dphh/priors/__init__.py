"""What a public text says before private data are read: a list of words, and how often each
n-gram occurs."""

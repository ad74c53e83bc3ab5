"""Files and folders: which ones a path means, atomic writes, and temporary private folders."""

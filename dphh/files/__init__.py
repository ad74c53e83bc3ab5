"""Files and folders: which are meant, written whole or not at all, and gone with their process."""

"""What the site's build makes: options, docstrings, pictures of prices."""

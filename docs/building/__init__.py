"""What the site's build makes: tables from the registry, pages from docstrings, pictures of prices."""

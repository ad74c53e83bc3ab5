"""Ways to look at a release: phrases, trees, charts, why a phrase is missing, and the report page.
All of it reads releases and public words only, so it costs nothing."""

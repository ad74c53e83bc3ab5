"""Looking at releases: phrases and trees of them, charts, why something is not there, and the page
that shows it all. What is here reads releases and public words alone, so it costs nothing."""

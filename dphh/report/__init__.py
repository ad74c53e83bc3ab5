"""Ways to look at a release: a summary, a page, a chart, lists, and why a phrase is missing. All of
it reads releases and public words only, so it costs nothing."""

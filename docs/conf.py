"""`make docs`: README, docs/, the lessons and the models' cards as a site, by Sphinx from the Markdown as it is."""

project = "Vidrio"
author = copyright = "The Vidrio contributors"  # noqa: A001
extensions = ["myst_parser"]
myst_heading_anchors = 5  # as a forge makes them
myst_enable_extensions = ["dollarmath"]
master_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "page/README.md",
    "src/vidrio/lessons/*.md",
    "src/vidrio/lessons/es/*.md",
    "src/vidrio/models/*/README.md",
    "src/vidrio/site/runtime/*.md",
    "recipes/en-es/model-log.md",
    "recipes/**/README.md",
    "tests/behaviour/README.md",
]
html_theme_options = {"page_width": "1100px"}
html_copy_source = False
# Every page is reached by links, as on a forge; and some code blocks show what no highlighter knows.
suppress_warnings = ["toc.not_included", "misc.highlighting_failure", "myst.header"]

"""`make docs`: README, docs/, the lessons and the models' cards as a site, by Sphinx from the Markdown as it is.

docs/python.md is completed from the docstrings, by autodoc, docs/commands.md from `--help`, and the navigation from the
README's table.
"""

import re

import click

from vidrio import cli

project = "Vidrio"
author = copyright = "The Vidrio contributors"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 5  # as a forge makes them
myst_enable_extensions = ["dollarmath"]
master_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "benchmarks/README.md",
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

default_role = "code"  # `name` in a docstring
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"  # with `without_constructors`: fields are described once, as fields
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
add_module_names = False


def help_of(name, command, context):
    """A command's help under its name, then that of its subcommands."""
    with click.Context(command, info_name=name, parent=context, terminal_width=78) as context:
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
        for below in command.list_commands(context) if isinstance(command, click.Group) else ():
            yield from help_of(below, command.get_command(context, below), context)


def add_help(app, page, source):
    if page == "docs/commands":
        source[0] += "\n" + "\n".join(help_of("vidrio", cli.vidrio, None))


def add_contents(app, page, source):
    """The README's table of reading paths, as the site's navigation."""
    if page == "README":
        table = source[0].partition("## Documentation")[2]
        for title, pages in re.findall(r"^\| ([a-z].*?) \| (\[.*\)) \|$", table, re.MULTILINE):
            entries = "\n".join(re.findall(r"\]\((.*?)\.md\)", pages))
            source[0] += f"\n```{{toctree}}\n:caption: {title[0].upper()}{title[1:]}\n:hidden:\n\n{entries}\n```\n"


def without_field_numbers(app, what, name, obj, options, lines):
    """A named tuple's fields have a docstring of Python's, "Alias for field number 0"."""
    lines[:] = [line for line in lines if not line.startswith("Alias for field number")]


def without_constructors(app, what, name, obj, skip, options):
    return skip or name in ("__init__", "__new__")


def setup(app):
    app.connect("source-read", add_help)
    app.connect("source-read", add_contents)
    app.connect("autodoc-skip-member", without_constructors)
    app.connect("autodoc-process-docstring", without_field_numbers)

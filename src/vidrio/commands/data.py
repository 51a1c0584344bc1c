"""`vidrio data inspect|clean|get`: sentence pairs, before a model learns from them."""

from typing import ClassVar

import click

from vidrio.commands._lazy import Lazy


class Data(Lazy):
    """The commands about data."""

    attribute = "command"
    table: ClassVar = {
        "inspect": ("vidrio.commands.data_inspect", "Count, measure, and show what cleaning would leave out."),
        "clean": ("vidrio.commands.data_clean", "Write the pairs worth learning from to one file."),
        "get": ("vidrio.commands.data_get", "Fetch pairs by name, with their licence."),
    }


@click.command(cls=Data)
def data() -> None:
    """Look at, clean and fetch sentence pairs.

    Pairs are read from tables (.tsv .csv .jsonl .parquet, or a .txt with tabs), from two files with aligned lines, all
    of them also as .gz .xz, or from Hugging Face as hf:NAME.
    """

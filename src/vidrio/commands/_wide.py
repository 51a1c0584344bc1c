"""`vidrio translate --ray`: what a worker does, and what is printed at the end."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import click

from vidrio.commands._progress import bar
from vidrio.commands._work import Work, warn_of_unknown
from vidrio.errors import ModelError
from vidrio.model.files import sha256
from vidrio.text.utf8 import Decoder
from vidrio.wide.bulk import Answer, Answered, Bulk, answer_files


def worker_start(load: Callable[[int | None], Work]) -> Callable[[int], Answer]:
    """How a worker starts: it loads the model, which must be the one that this machine has."""
    model = checksum(load(None))

    def start(cores: int) -> Answer:
        work = load(cores)
        if checksum(work) != model:
            folder = work.model.folder
            raise ModelError(f"{folder} is another model here", do="give all machines the same model and Vidrio")

        def answer(name: str, raw: Sequence[bytes], first: int) -> Answered:
            mine = replace(work, unknown={})
            lines = list(mine.on_lines(map(Decoder(name, first=first), raw), first))
            return Answered(lines, list(mine.unknown))

        return answer

    return start


def checksum(work: Work) -> str:
    """Of a model: its config holds the checksums of its other files."""
    return sha256(work.model.folder / "config.json")


def answer_on_cluster(bulk: Bulk) -> None:
    try:
        summary = answer_files(bulk, bar)
    except KeyboardInterrupt:
        click.echo("vidrio: finished parts are kept; run the same command with --resume to continue", err=True)
        raise
    there = f" ({summary.there:,} there before)" if summary.there else ""
    pool = summary.pool
    workers = f", {_count(pool.workers, 'worker')} of {_count(pool.cores, 'core')}" if pool else ""
    files, lines = _count(summary.files, "file"), _count(summary.lines, "line")
    click.echo(f"vidrio: {files}{there}, {lines}{workers}", err=True)
    warn_of_unknown(list(summary.unknown))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)

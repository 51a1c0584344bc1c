"""`vidrio translate --ray`: what a worker does, and what is told in the end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import click

from vidrio.commands._lines import DO, tell_replaced
from vidrio.commands._progress import bar
from vidrio.commands._records import AnswerWork, Work, tell_unknown
from vidrio.text.utf8 import Decoder
from vidrio.wide.bulk import Answer, Answered, Asked, answer_files

# As the command does it: how, chunks of lines, the number of the first → lines, some at a time.
Print = Callable[[Work | AnswerWork, Iterator[list[str]], int], Iterator[Iterable[str]]]


def answering(work: Work | AnswerWork, errors: str, printed: Print) -> Answer:
    """Answers the lines of a part. Several parts may be worked on at the same time."""
    from vidrio.translate.stream import in_chunks

    def answer(name: str, raw: Sequence[bytes], first: int, objects: bool) -> Answered:
        decode = Decoder(name, errors, DO, first)
        mine = replace(work, unknown={}, jsonl=work.jsonl or objects, as_json=work.as_json and not objects)
        written = printed(mine, in_chunks(map(decode, raw), work.at_once), first)
        return Answered([*chain.from_iterable(written)], list(mine.unknown), decode.replaced)

    return answer


def columns_of(work: Work | AnswerWork) -> list[str]:
    """What a table gets: the fields that a line of JSON gets."""
    if isinstance(work, AnswerWork):
        return ["class", "probability", "classes"] if work.answers.config.has_encoder else ["written", "alternatives"]
    asked = {"alternatives": work.options.n_best > 1, "confidence": work.doubts is not None}
    return ["translation", *(name for name, is_asked in asked.items() if is_asked)]


def answer_on_cluster(asked: Asked) -> None:
    try:
        summary = answer_files(asked, bar)
    except KeyboardInterrupt:
        click.echo("vidrio: what is done stays; the same command with --resume goes on", err=True)
        raise
    again = f"; {_count(summary.again, 'part')} tried again" if summary.again else ""
    there = f" ({summary.there:,} there before)" if summary.there else ""
    pool = summary.pool
    workers = f", {_count(pool.workers, 'worker')} of {_count(pool.cores, 'core')}" if pool else ""
    files, lines = _count(summary.files, "file"), _count(summary.lines, "line")
    click.echo(f"vidrio: {files}{there}, {lines}{workers}{again}", err=True)
    tell_replaced(summary.replaced)
    tell_unknown(summary.unknown)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)

"""From the user's files to something to learn from: cleaned, held out, split into tokens; each made once.

    MODEL/run/data/      the pairs, as `data/prepare.py` writes them
    MODEL/run/tokens/    tokenizer.json (target-tokenizer.json), the classes; and encoded pairs in 0/, and with subword
                         dropout, which splits words in several ways, also in 1/ and 2/

Each task is a case of the same: a classifier's translation is the class, a text generator's the text itself.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.prepare import Prepared, both_sides, checksum, is_made, key_of, once, prepare
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, corpora, texts
from vidrio.errors import DataError
from vidrio.learn.batches import Encode, Examples, in_memory, read, write
from vidrio.learn.plan import Plan, Request, cannot_change
from vidrio.model.config import SpecialIds
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
HELD_OUT = 1000  # sentences to validate with, and as many to judge the model at the end
ENCODINGS = 3  # with subword dropout: each pass over the data takes the next one
# The largest vocabulary, and how many pairs it takes.
VOCABULARY_FOR = {2_000: 0, 4_000: 10_000, 8_000: 30_000, 16_000: 1_000_000, 32_000: 5_000_000}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a run learns from, ready."""

    kind: str  # translate, classify or generate
    source: Tokenizer
    target: Tokenizer  # the same one, unless the vocabularies are separate
    labels: tuple[str, ...]
    encodings: list[Examples]  # the same pairs, split in one way or in several
    test: Sequence[tuple[str, str]]  # texts to judge with, and their translations or classes
    held_out: Sequence[tuple[str, str]]  # the same to validate with
    prepared: Prepared

    @property
    def pairs(self) -> dict[str, int]:
        """How many there are to train, to validate (dev) and to test."""
        return self.prepared.pairs

    @cached_property
    def longest(self) -> NDArray[np.int32]:
        """The longer side of each pair, in tokens with the end token."""
        first = self.encodings[0]
        longer: NDArray[np.int32] = np.maximum(first.source.lengths, first.target.lengths) + 1
        return longer

    @property
    def tokens(self) -> int:
        """In one pass over the data."""
        return int(self.encodings[0].source.lengths.sum() + self.encodings[0].target.lengths.sum())

    def described(self) -> list[str]:
        """What was read, and what was left out and why."""
        tally, pairs = self.prepared.tally, self.pairs
        return [
            f"read {tally.read:,} {'lines' if self.kind == 'generate' else 'pairs'}, kept {tally.kept:,}",
            *(f"  left out {count:,}: {reason}" for reason, count in tally.reasons()),
            f"to learn from: {pairs['train']:,}; held out: {pairs['dev']:,} to validate, {pairs['test']:,} to judge "
            "the finished model",
        ]

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> Examples:
        """Held-out pairs as ids."""
        encode = _encoders(self.kind, self.source, self.target, self.labels)
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        ids = [to_ids(side) for to_ids, side in zip(encode, sides, strict=True)]
        return in_memory(list(zip(*ids, strict=True)))


def make_task(request: Request, before: Plan | None, progress: Progress) -> Task:
    """What the request asks for, made now or earlier; a run that goes on refuses anything else, untouched."""
    kind = request.task
    dev, test, files = (_corpora(request, names) for names in (request.dev, request.test, request.names))
    options = replace(
        request.clean,
        languages=request.languages,
        held_out=(0 if dev else HELD_OUT, 0 if test else HELD_OUT),
        apart=(*dev, *test),
        least=FEWEST,
        one_sided=kind != "translate",
    )
    dropout = request.recipe.get("subword_dropout", before.recipe.subword_dropout if before else 0.0)
    data_key = key_of(files, options, (dev, test))
    started = [tokenizer.fingerprint() for tokenizer in request.start.tokenizers()] if request.start else []
    token_key = checksum([data_key, request.vocabulary, request.separate, dropout, started])
    if before and not is_made(request.run / "data", data_key):
        raise cannot_change(["the sentence pairs or how they are cleaned"])
    if before and not is_made(request.run / "tokens", token_key):
        raise cannot_change(["the tokenizer, or --subword-dropout"])
    prepared = prepare(request.run / "data", files, options, progress, (dev, test))
    for part, use in (("train", "learn from"), ("dev", "validate with"), ("test", "judge with" if test else "")):
        if use and not prepared.pairs[part]:
            found = prepared.tally.summary(prepared.pairs["train"])
            do = "give more pairs, or other sets with --dev and --test"
            raise DataError(f"there is nothing to {use}", found=found, do=do)
    once(request.run / "tokens", token_key, lambda to: _make_tokens(to, request, prepared, dropout, progress))
    progress.work = None
    special = request.start.config.special if request.start else SpecialIds()
    return load_task(request.run, kind, special)


def load_task(run: Path, kind: str, special: SpecialIds) -> Task:
    """The task as it was prepared in the run's folder."""
    folder = run / "tokens"
    if not (folder / "key").is_file():
        raise DataError(
            "this process does not find the data that the leading process has made",
            found=f"no tokens of this run in {folder}",
            do="give all machines the same folder with --to: one that they share",
        )
    prepared = Prepared.load(run / "data")
    source = Tokenizer.load(folder / "tokenizer.json", special)
    separate = folder / "target-tokenizer.json"
    target = Tokenizer.load(separate, special) if separate.exists() else source
    repeats = [(share.pairs, share.weight) for share in prepared.shares]
    return Task(
        kind=kind,
        source=source,
        target=target,
        labels=tuple(json.loads((folder / "labels.json").read_text(encoding="utf-8"))),
        encodings=[read(one, max(source.size, target.size), repeats) for one in sorted(folder.glob("[0-9]"))],
        test=prepared.read("test"),
        held_out=prepared.read("dev"),
        prepared=prepared,
    )


def largest_for(table: dict[Any, int], amount: int) -> Any:
    """The last entry of a table whose threshold the amount reaches."""
    return [name for name, threshold in table.items() if amount >= threshold][-1]


def _corpora(request: Request, names: tuple[str, ...]) -> tuple[Corpus, ...]:
    if not names:
        return ()
    if request.task == "generate":
        return tuple(texts(names))
    return tuple(corpora(names, columns=request.columns, languages=request.languages))


def _make_tokens(folder: Path, request: Request, prepared: Prepared, dropout: float, progress: Progress) -> None:
    """Learn the tokenizers (or take those of the model to learn on from), and encode the training pairs."""
    kind, train = request.task, prepared.path("train")
    size = request.vocabulary or largest_for(VOCABULARY_FOR, prepared.pairs["train"])

    def learn(texts: Iterable[str]) -> Tokenizer:
        progress.work = Work("learning the tokenizer")
        return Tokenizer.learn(texts, size)

    sources, targets = (source for source, _ in both_sides(train)), (target for _, target in both_sides(train))
    if request.start:
        source, target = request.start.tokenizers()
    elif kind != "translate":
        source = target = learn(sources)
    elif request.separate:
        source, target = learn(sources), learn(targets)
    else:  # one language after the other: of very many texts only every second is taken
        source = target = learn(chain(sources, targets))
    source.save(folder / "tokenizer.json")
    if target is not source:
        target.save(folder / "target-tokenizer.json")
    labels = _labels(prepared, request.dev, request.test) if kind == "classify" else []
    (folder / "labels.json").write_text(json_text(labels), encoding="utf-8")
    count = ENCODINGS if dropout else 1
    encoding = progress.work = Work("encoding pairs", count * prepared.pairs["train"])
    if dropout:
        source, target = source.with_dropout(dropout), target.with_dropout(dropout)
    encode = _encoders(kind, source, target, labels)
    for number in range(count):
        write(folder / str(number), both_sides(train), encode, max(source.size, target.size), encoding)


def _encoders(kind: str, source: Tokenizer, target: Tokenizer, labels: Sequence[str]) -> tuple[Encode, Encode]:
    """How the two sides of a pair become ids: a class is its number, a generator has no source."""
    if kind == "classify":
        return source.encode_batch, lambda classes: [[labels.index(name)] for name in classes]
    if kind == "generate":
        return lambda texts: [[] for _ in texts], target.encode_batch
    return source.encode_batch, target.encode_batch


def _labels(prepared: Prepared, *given: tuple[str, ...]) -> list[str]:
    """The classes that can be learned: of all texts but those of given sets, which may have no others."""
    train, dev, test = ({label for _, label in both_sides(prepared.path(part))} for part in ("train", "dev", "test"))
    own = [train, *(part for part, names in zip((dev, test), given, strict=True) if not names)]
    labels = sorted(set[str]().union(*own))
    if len(labels) < 2:
        raise DataError(
            "a classifier needs at least two classes",
            found=f"{prepared.tally.kept:,} texts of {len(labels)} classes",
            do=f"give at least {FEWEST} texts of two classes, as text<TAB>class",
        )
    if unknown := sorted((dev | test) - {*labels}):
        raise DataError(
            "the held-out sets have classes that the training texts lack",
            found=", ".join(unknown[:10]) + (" …" if len(unknown) > 10 else ""),
            do="give texts of these classes to learn from, or leave them out of --dev and --test",
        )
    return labels

"""What is asked of a training, and what it learns from: the user's files, cleaned, held out, split into tokens.

    MODEL/run/data/    the pairs, as `data/prepare.py` writes them; their ids, as `batches.py` does; the tokenizers; the
                       classes

Every task is a case of the same: a classifier's translation is the class, a text generator's the text itself.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.prepare import CleaningOptions, Prepared, both_sides, clean, is_made, key_of, making
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, corpora, described, texts
from vidrio.errors import DataError, RunError
from vidrio.learn.batches import Encode, Examples, in_memory, read, write
from vidrio.model import find as models
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.folder import About, read_config
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.text.tokens.vocabulary import MOST_TEXTS, thin

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
SHOWN = 3  # pairs, before the training begins
HELD_OUT = 1000  # sentences to validate with, and as many to test with
# The largest vocabulary, and how many pairs it takes.
VOCABULARY_FOR = {2_000: 0, 4_000: 10_000, 8_000: 30_000, 16_000: 1_000_000, 32_000: 5_000_000}

# --- what is asked for ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When training ends. Exactly one is set."""

    steps: int = 0
    epochs: float = 0
    seconds: float = 0


@dataclass(frozen=True)
class Start:
    """A model to fine-tune. Its tokenizer and sizes are kept."""

    folder: Path
    config: ModelConfig
    about: About

    @staticmethod
    def find(name: str) -> "Start":
        """A folder, or a packaged model by its name."""
        folder = models.find(name)
        config, about = read_config(folder)
        if config.shape != "encoder-decoder":
            raise RunError(f"{name} does not translate", found=f"its shape is {config.shape!r}", do="give a translator")
        return Start(folder, config, about)

    @property
    def name(self) -> str:
        return self.about.name or self.folder.name

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return read_tokenizers(self.folder, self.config)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A training as the user requested it."""

    folder: Path  # the model's
    names: tuple[str, ...]  # of the files with the pairs
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: tuple[str, str] | None = None
    languages: tuple[str, str] = ("", "")
    clean: CleaningOptions = field(default_factory=CleaningOptions)
    vocabulary: int = 0  # 0: by the number of pairs
    start: Start | None = None
    task: str = "translate"
    preset: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # of the model's config
    recipe: dict[str, Any] = field(default_factory=dict)
    stop: Stop | None = None
    device: str = ""
    command: tuple[str, ...] = ()  # as it was typed, for the model card

    @property
    def run(self) -> Path:
        """Where the training keeps what it needs to continue."""
        return self.folder / "run"


@dataclass(frozen=True)
class Reporter:
    """Receives lines of text, metrics and progress."""

    say: Callable[[str], None] = lambda text: None
    watch: Callable[[dict[str, Any]], None] = lambda record: None
    progress: Progress = field(default_factory=Progress)


def cannot_change(what: Sequence[str]) -> RunError:
    """The error for a request that contradicts the run that it would continue."""
    do = "use the same options as before, or a new folder with --to"
    return RunError("only the end of a started run can change", found="; ".join(what), do=do)


# --- what it learns from ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Task:
    """The prepared data of a run."""

    kind: str  # translate, classify or generate
    source: Tokenizer
    target: Tokenizer  # the same one, unless a model to learn on from has two
    labels: tuple[str, ...]
    examples: Examples
    test: Sequence[tuple[str, str]]  # texts, and their translations or classes
    held_out: Sequence[tuple[str, str]]  # the same to validate with
    prepared: Prepared

    @property
    def pairs(self) -> dict[str, int]:
        """The number of training, validation (dev) and test pairs."""
        return self.prepared.pairs

    @cached_property
    def longest(self) -> NDArray[np.int32]:
        """The longer side of each pair, in tokens with the end token."""
        longer: NDArray[np.int32] = np.maximum(self.examples.source.lengths, self.examples.target.lengths) + 1
        return longer

    @property
    def tokens(self) -> int:
        """In one pass over the data."""
        return int(self.examples.source.lengths.sum() + self.examples.target.lengths.sum())

    def described(self) -> list[str]:
        """What was read and what was left out, in words."""
        tally, pairs = self.prepared.tally, self.pairs
        return [
            f"read {tally.read:,} {'lines' if self.kind == 'generate' else 'pairs'}, kept {tally.kept:,}",
            *(f"  left out {count:,}: {reason}" for reason, count in tally.reasons()),
            f"to learn from: {pairs['train']:,}; held out: {pairs['dev']:,} to validate, {pairs['test']:,} to test",
        ]

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> Examples:
        """Held-out pairs as ids."""
        encode = _encoders(self.kind, self.source, self.target, self.labels)
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        ids = [to_ids(side) for to_ids, side in zip(encode, sides, strict=True)]
        return in_memory(list(zip(*ids, strict=True)))


def make_task(request: Request, reporter: Reporter, *, begun: bool = False) -> Task:
    """Prepare the requested task, unless it was prepared before. A started run accepts no other task."""
    progress = reporter.progress
    dev, test, files = (_corpora(request, names) for names in (request.dev, request.test, request.names))
    options = replace(
        request.clean,
        held_out=(0 if dev else HELD_OUT, 0 if test else HELD_OUT),
        dev=dev,
        test=test,
        least=FEWEST,
        one_sided=request.task != "translate",
    )
    started = [tokenizer.fingerprint() for tokenizer in request.start.tokenizers()] if request.start else []
    folder, key = request.run / "data", key_of(files, options, request.vocabulary, started)
    if begun and not is_made(folder, key):
        raise cannot_change(["the sentence pairs, how they are cleaned, or the tokenizer"])
    if not is_made(folder, key):
        for corpus in files:
            for line in described(corpus, SHOWN if len(files) == 1 else 1):
                reporter.say(line)
        with making(folder, key) as part:
            clean(part, files, options, progress)
            _make_tokens(part, request, progress)
        progress.work = None
    return load_task(request.run, request.task, request.start.config.special if request.start else SpecialIds())


def load_task(run: Path, kind: str, special: SpecialIds) -> Task:
    """The task prepared in the run's folder."""
    prepared = Prepared.load(run / "data")
    source = Tokenizer.load(prepared.folder / "tokenizer.json", special)
    separate = prepared.folder / "target-tokenizer.json"
    target = Tokenizer.load(separate, special) if separate.exists() else source
    repeats = [(corpus["pairs"], corpus["weight"]) for corpus in prepared.corpora]
    return Task(
        kind=kind,
        source=source,
        target=target,
        labels=tuple(json.loads((prepared.folder / "labels.json").read_text(encoding="utf-8"))),
        examples=read(prepared.folder, max(source.size, target.size), repeats),
        test=prepared.read("test"),
        held_out=prepared.read("dev"),
        prepared=prepared,
    )


def _corpora(request: Request, names: tuple[str, ...]) -> tuple[Corpus, ...]:
    if request.task == "generate":
        return tuple(texts(names))
    return tuple(corpora(names, columns=request.columns, languages=request.languages))


def _make_tokens(folder: Path, request: Request, progress: Progress) -> None:
    """Learn the tokenizer, or take those of the model to fine-tune, and encode the training pairs."""
    prepared = Prepared.load(folder)
    uses = {"train": "learn from", "dev": "validate with"} | ({"test": "test with"} if request.test else {})
    for part, use in uses.items():
        if not prepared.pairs[part]:
            found = prepared.tally.summary(prepared.pairs["train"])
            do = "give more pairs, or other sets with --dev and --test"
            raise DataError(f"there is nothing to {use}", found=found, do=do)
    progress.work = Work("learning the tokenizer")
    source, target = request.start.tokenizers() if request.start else _learn_tokenizer(request, prepared)
    source.save(folder / "tokenizer.json")
    if target is not source:
        target.save(folder / "target-tokenizer.json")
    labels = _labels(prepared, request.dev, request.test) if request.task == "classify" else []
    (folder / "labels.json").write_text(json_text(labels), encoding="utf-8")
    encoding = progress.work = Work("encoding pairs", prepared.pairs["train"])
    encode = _encoders(request.task, source, target, labels)
    write(folder, both_sides(prepared.path("train")), encode, max(source.size, target.size), encoding)


def _learn_tokenizer(request: Request, prepared: Prepared) -> tuple[Tokenizer, Tokenizer]:
    """One tokenizer for both sides, from an even sample of the training pairs where there are very many."""
    pairs = prepared.pairs["train"]
    size = request.vocabulary or max(size for size, threshold in VOCABULARY_FOR.items() if pairs >= threshold)
    sources, targets = zip(*thin(both_sides(prepared.path("train")), MOST_TEXTS // 2), strict=True)
    one = Tokenizer.learn((*sources, *targets) if request.task == "translate" else sources, size)
    return one, one


def _encoders(kind: str, source: Tokenizer, target: Tokenizer, labels: Sequence[str]) -> tuple[Encode, Encode]:
    """The encoders of both sides. A class becomes its number; a generator has no source."""
    if kind == "classify":
        return source.encode_batch, lambda classes: [[labels.index(name)] for name in classes]
    if kind == "generate":
        return lambda texts: [[] for _ in texts], target.encode_batch
    return source.encode_batch, target.encode_batch


def _labels(prepared: Prepared, *given: tuple[str, ...]) -> list[str]:
    """The classes to learn: those of all texts but the given sets, which may have no others."""
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

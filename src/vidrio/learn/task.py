"""Define a training request, and prepare its data: clean, split and tokenize the user's files.

    MODEL/run/data/    pairs (see `data/prepare.py`), token ids (see `batches.py`), tokenizers and classes

For classification, the target is a class; for text generation, it is the text itself.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vidrio.data.prepare import CleaningOptions, Prepared, clean, is_made, key_of, making
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, corpora, described, texts
from vidrio.errors import DataError, RunError
from vidrio.learn.batches import Encode, Examples, in_memory, read, write
from vidrio.model import find as models
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.folder import About, read_config
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.text.tokens.vocabulary import MAX_TEXTS, thin

FEWEST = 20  # minimum number of pairs
SHOWN = 3  # number of pairs to display before training
HELD_OUT = 1000  # number of pairs to hold out for validation, and the same number for testing
# Vocabulary sizes, with the minimum number of pairs for each.
VOCABULARY_FOR = {2_000: 0, 4_000: 10_000, 8_000: 30_000, 16_000: 1_000_000, 32_000: 5_000_000}


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When training ends. Exactly one field is set."""

    steps: int = 0
    epochs: float = 0
    seconds: float = 0


@dataclass(frozen=True)
class Start:
    """A model to fine-tune. The new model inherits its tokenizers and sizes."""

    folder: Path
    config: ModelConfig
    about: About
    tokenizers: tuple[Tokenizer, Tokenizer]

    @staticmethod
    def find(name: str) -> "Start":
        """Find a model by name or folder."""
        folder = models.find(name)
        config, about = read_config(folder)
        if config.shape != "encoder-decoder":
            raise RunError(f"{name} does not translate", found=f"its shape is {config.shape!r}", do="use a translator")
        return Start(folder, config, about, read_tokenizers(folder, config))

    @property
    def name(self) -> str:
        return self.about.name or self.folder.name


@dataclass(frozen=True, kw_only=True)
class Request:
    """The user's request for a training run."""

    folder: Path  # the model folder to write
    names: tuple[str, ...]  # the files that contain the pairs
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: tuple[str, str] | None = None
    languages: tuple[str, str] = ("", "")
    clean: CleaningOptions = field(default_factory=CleaningOptions)
    vocabulary: int = 0  # vocabulary size; 0 means that the number of pairs determines it
    start: Start | None = None
    task: str = "translate"
    preset: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # config fields set by the user
    recipe: dict[str, Any] = field(default_factory=dict)  # fields of the recipe set by the user
    stop: Stop | None = None
    device: str = ""
    command: tuple[str, ...] = ()  # the command as typed, for the model card

    @property
    def like_marian(self) -> bool:
        """Whether to train a model with a recurrent decoder, which Marian's engines can run."""
        return self.task == "translate" and self.sizes.get("decoder_cell") == "ssru" and not self.start

    @property
    def run(self) -> Path:
        """The folder that contains the state of the run."""
        return self.folder / "run"


def cannot_change(what: Sequence[str]) -> RunError:
    """Return the error for a request to change the settings of an existing run."""
    do = "use the same options as before, or a new folder with --to"
    return RunError("only the end of an existing run can be changed", found="; ".join(what), do=do)


@dataclass(frozen=True, kw_only=True)
class Task:
    """The prepared data of a run."""

    kind: str  # translate, classify or generate
    source: Tokenizer
    target: Tokenizer  # the same object as `source`, unless the fine-tuned model has two tokenizers
    labels: tuple[str, ...]
    examples: Examples
    test: Sequence[tuple[str, str]]  # test texts with their translations or classes
    held_out: Sequence[tuple[str, str]]  # validation texts with their translations or classes
    prepared: Prepared

    @property
    def pairs(self) -> dict[str, int]:
        """The number of training, validation (dev) and test pairs."""
        return self.prepared.pairs

    @property
    def tokens(self) -> int:
        """The number of tokens per epoch."""
        return int(self.examples.source.lengths.sum() + self.examples.target.lengths.sum())

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> Examples:
        """Encode held-out pairs."""
        encode = _encoders(self.kind, self.source, self.target, self.labels)
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        ids = [to_ids(side) for to_ids, side in zip(encode, sides, strict=True)]
        return in_memory(list(zip(*ids, strict=True)))


def make_task(request: Request, progress: Progress, *, begun: bool = False) -> Task:
    """Prepare the data of the requested task, unless an earlier call has done so. Once a run has begun, different data
    is rejected."""
    dev, test, files = (_corpora(request, names) for names in (request.dev, request.test, request.names))
    options = replace(
        request.clean,
        held_out=(0 if dev else HELD_OUT, 0 if test else HELD_OUT),
        dev=dev,
        test=test,
        least=FEWEST,
        one_sided=request.task != "translate",
    )
    start = request.start
    started = [tokenizer.fingerprint() for tokenizer in start.tokenizers] if start else []
    folder, key = request.run / "data", key_of(files, options, request.vocabulary, started)
    if begun and not is_made(folder, key):
        raise cannot_change(["the sentence pairs, how they are cleaned, or the tokenizer"])
    if not is_made(folder, key):
        for corpus in files:
            for line in described(corpus, SHOWN if len(files) == 1 else 1):
                progress.say(line)
        with making(folder, key) as part:
            _make_tokens(clean(part, files, options, progress), request, progress)
        progress.work = None
    task = load_task(request.run, request.task, start.config.special if start else None)
    tally, pairs = task.prepared.tally, task.pairs
    progress.say(f"read {tally.read:,} {'lines' if task.kind == 'generate' else 'pairs'}, kept {tally.kept:,}")
    for reason, count in tally.reasons():
        progress.say(f"  left out {count:,}: {reason}")
    progress.say(
        f"training pairs: {pairs['train']:,}; held out: {pairs['dev']:,} for validation, {pairs['test']:,} for testing"
    )
    return task


def load_task(run: Path, kind: str, special: SpecialIds | None) -> Task:
    """Load the data that `make_task` prepared in the folder of a run."""
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
        test=list(prepared.read("test")),
        held_out=list(prepared.read("dev")),
        prepared=prepared,
    )


def _corpora(request: Request, names: tuple[str, ...]) -> tuple[Corpus, ...]:
    if request.task == "generate":
        return tuple(texts(names))
    return tuple(corpora(names, columns=request.columns, languages=request.languages))


def _make_tokens(prepared: Prepared, request: Request, progress: Progress) -> None:
    """Train a tokenizer, or reuse the tokenizers of the model being fine-tuned, and encode the training pairs."""
    folder, pairs = prepared.folder, prepared.pairs
    uses = {"train": "learn from", "dev": "validate with"} | ({"test": "test with"} if request.test else {})
    for part, use in uses.items():
        if not pairs[part]:
            found = prepared.tally.summary(pairs["train"])
            do = "provide more pairs, or other sets with --dev and --test"
            raise DataError(f"there is nothing to {use}", found=found, do=do)
    progress.work = Work("training the tokenizer")
    if request.start:
        source, target = request.start.tokenizers
    else:
        size = request.vocabulary or max(size for size, least in VOCABULARY_FOR.items() if pairs["train"] >= least)
        sources, targets = zip(*thin(prepared.read("train"), MAX_TEXTS // 2), strict=True)
        learned = (*sources, *targets) if request.task == "translate" else sources
        source = target = (Tokenizer.learn_unigram if request.like_marian else Tokenizer.learn)(learned, size)
    source.save(folder / "tokenizer.json")
    if target is not source:
        target.save(folder / "target-tokenizer.json")
    labels = _labels(prepared, request) if request.task == "classify" else []
    (folder / "labels.json").write_text(json_text(labels), encoding="utf-8")
    encoding = progress.work = Work("encoding pairs", pairs["train"])
    encode = _encoders(request.task, source, target, labels)
    write(folder, prepared.read("train"), encode, max(source.size, target.size), encoding)


def _encoders(kind: str, source: Tokenizer, target: Tokenizer, labels: Sequence[str]) -> tuple[Encode, Encode]:
    """Return functions that encode the source and the target. A class label is encoded as its index. A text generator
    has no source, so its source encoder returns empty lists."""
    if kind == "classify":
        places = {name: place for place, name in enumerate(labels)}
        return source.encode_batch, lambda classes: [[places[name]] for name in classes]
    if kind == "generate":
        return lambda texts: [[] for _ in texts], target.encode_batch
    return source.encode_batch, target.encode_batch


def _labels(prepared: Prepared, request: Request) -> list[str]:
    """Return the classes to learn. The user's own validation and test sets must not contain any other classes."""
    train, dev, test = ({label for _, label in prepared.read(part)} for part in ("train", "dev", "test"))
    labels = sorted(train | (set() if request.dev else dev) | (set() if request.test else test))
    if len(labels) < 2:
        raise DataError(
            "a classifier needs at least two classes",
            found=f"{prepared.tally.kept:,} texts of {len(labels)} classes",
            do=f"provide at least {FEWEST} texts of two classes, as text<TAB>class",
        )
    if unknown := sorted((dev | test) - {*labels}):
        raise DataError(
            "the held-out sets contain classes that are missing from the training texts",
            found=", ".join(unknown[:10]) + (" …" if len(unknown) > 10 else ""),
            do="add texts of these classes to the training data, or remove them from --dev and --test",
        )
    return labels

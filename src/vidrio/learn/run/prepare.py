"""From files of sentence pairs to something to learn from: cleaned, held out, encoded. Other texts: `prepare_texts.py`.

Each task ends up the same: examples, held-out ones, tokenizers, and a function that says how good a model is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from vidrio.data.clean import tidy
from vidrio.data.pairs import corpora, read
from vidrio.data.prepare import Prepared, key_of, made_of_others, prepare
from vidrio.data.progress import Progress
from vidrio.data.skipped import Tally
from vidrio.data.store import store
from vidrio.errors import DataError
from vidrio.learn.batches import Examples, in_memory
from vidrio.learn.run.plan import Plan, cannot_change
from vidrio.learn.run.request import Material, Start
from vidrio.learn.run.validate import Texts, Validate, validate_translation
from vidrio.model.files import write_atomically
from vidrio.text.tokens.tokenizer import Tokenizer

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
HELD_OUT = 1000  # sentences to validate with, and as many to judge the model at the end
JUDGED = 300  # of the former, translated at every validation
# The largest vocabulary, and how many pairs it takes.
VOCABULARY_FOR = {2_000: 0, 4_000: 10_000, 8_000: 30_000, 16_000: 1_000_000, 32_000: 5_000_000}


@dataclass(frozen=True)
class DataFolder:
    """The run's folder, into which the data go."""

    run: Path
    owner: bool = True  # this process makes them; else they only have to be read
    begun: Plan | None = None  # the run that goes on: other data are refused before anything of it is altered

    def hold(self, *, data: str = "", tokenizers: Sequence[Tokenizer] = ()) -> None:
        """Refuse other data than the run that goes on was begun with."""
        if self.begun is None:
            return
        if data and data != self.begun.data:
            raise cannot_change(["the sentence pairs or how they are cleaned"])
        if any(tokenizer.fingerprint() not in self.begun.tokenizers for tokenizer in tokenizers):
            raise cannot_change(["the tokenizer"])


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a run learns from, ready."""

    kind: str
    key: str  # of the data: another key is other data
    source: Tokenizer | None = None
    target: Tokenizer | None = None
    examples: Examples
    validate: Validate
    judge: Validate | None = None  # the finished model, where nothing has to be translated for it
    test: Sequence[tuple[str, str]]  # texts to judge with, and their translations, their classes or nothing
    held_out: Sequence[tuple[str, str]]  # the same to validate with
    labels: tuple[str, ...] = ()
    tally: Tally
    pairs: dict[str, int]

    @property
    def tokens(self) -> int:
        """In one pass over the examples."""
        return int(self.examples.source.lengths.sum() + self.examples.target.lengths.sum())

    @property
    def fingerprints(self) -> list[str]:
        """Of its tokenizers."""
        return [tokenizer.fingerprint() for tokenizer in (self.source, self.target) if tokenizer]

    def sizes(self) -> dict[str, Any]:
        """What the data decides about the model's config."""
        tokenizer = self.source or self.target
        assert tokenizer is not None
        values: dict[str, Any] = {
            "source_vocabulary": self.source.size if self.source else 0,
            "target_vocabulary": self.target.size if self.target else 0,
            "special": tokenizer.special,
        }
        if self.kind == "classify":
            return values | {"shape": "encoder", "n_classes": len(self.labels), "tying": "none"}
        if self.kind == "generate":
            return values | {"shape": "decoder"}
        return values | {"tying": "all" if self.source is self.target else "output"}


def sentence_pairs(folder: DataFolder, material: Material, start: Start | None, progress: Progress) -> Task:
    """Sentence pairs, cleaned, held out, encoded; on disk."""
    learn_from = corpora(material.names, columns=material.columns, languages=material.languages)
    dev, test = (corpora(names, columns=material.columns) if names else [] for names in (material.dev, material.test))
    wishes = replace(
        material.clean,
        languages=material.languages,
        held_out=(0 if dev else HELD_OUT, 0 if test else HELD_OUT),
        apart=(*dev, *test),
        least=FEWEST,
    )
    folder.hold(data=key_of(learn_from, wishes))
    prepared = prepare(folder.run / "data", learn_from, wishes, progress, made=not folder.owner)
    dev_pairs, test_pairs = (
        [(tidy(pair.source), tidy(pair.target)) for corpus in files for pair in read(corpus, Tally())]
        if files
        else prepared.read(part)
        for files, part in ((dev, "dev"), (test, "test"))
    )
    if not prepared.pairs["train"] or not dev_pairs:
        raise DataError(
            "nothing is left to learn from" if dev_pairs else "there are too few pairs to hold some out for validation",
            found=prepared.tally.summary(prepared.pairs["train"]),
            do="give more pairs, or a validation set with --dev",
        )
    source, target = start.tokenizers() if start else _learn_tokenizers(folder, prepared, material, progress)
    folder.hold(tokenizers=(source, target))
    stored = store(prepared, source, target, progress)
    sources, targets = zip(*dev_pairs, strict=True)
    held_out = in_memory(list(zip(source.encode_batch(sources), target.encode_batch(targets), strict=True)))
    return Task(
        kind="translate",
        key=prepared.key,
        source=source,
        target=target,
        examples=Examples(stored.source, stored.target, [(share.pairs, share.weight) for share in prepared.shares]),
        validate=validate_translation(held_out, Texts(sources, targets, target.decode), JUDGED),
        held_out=dev_pairs,
        test=test_pairs,
        tally=prepared.tally,
        pairs=prepared.pairs,
    )


def _learn_tokenizers(
    folder: DataFolder, prepared: Prepared, material: Material, progress: Progress
) -> tuple[Tokenizer, Tokenizer]:
    """One tokenizer for both sides, or one for each; learned from the training pairs."""

    def side(n: int) -> Iterator[str]:
        with prepared.path("train").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1].split("\t")[n]

    def both() -> Iterator[str]:
        yield from side(0)
        yield from side(1)

    learn = partial(learn_tokenizer, folder, material, progress, (prepared.key, prepared.pairs["train"]))
    if not material.separate:
        one = learn("tokenizer.json", both)
        return one, one
    return learn("tokenizer.json", partial(side, 0)), learn("target-tokenizer.json", partial(side, 1))


def learn_tokenizer(
    folder: DataFolder,
    material: Material,
    progress: Progress,
    data: tuple[str, int],
    name: str,
    texts: Callable[[], Iterable[str]],
) -> Tokenizer:
    """The tokenizer that lies there already from the same data (their key, and how many) and wishes, or a new one."""
    path, (key, count) = folder.run / name, data
    stamp = path.with_suffix(".key")
    size = material.vocabulary or largest_for(VOCABULARY_FOR, count)
    # The False stands for an option that there was (--lowercase): what was learned before it went is found again.
    wish = sha256(repr((key, material.tokenizer, size, False, material.separate)).encode()).hexdigest()
    if path.exists() and stamp.exists() and stamp.read_text() == wish:
        return Tokenizer.load(path)
    if not folder.owner:
        raise made_of_others(path)
    with progress("learning the tokenizer", 0):
        tokenizer = Tokenizer.learn(texts(), material.tokenizer, size)
    folder.hold(tokenizers=(tokenizer,))
    tokenizer.save(path)
    write_atomically(stamp, wish.encode())
    return tokenizer


def largest_for(table: dict[Any, int], amount: int) -> Any:
    """The last entry of a table whose threshold the amount reaches."""
    return [name for name, threshold in table.items() if amount >= threshold][-1]

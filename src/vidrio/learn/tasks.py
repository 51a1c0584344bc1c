"""From the user's files to something to learn from: for translating, for telling classes, for writing on.

Each task ends up the same: examples, held-out ones, tokenizers, and a function that says how good a model is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from vidrio.errors import DataError
from vidrio.learn.batches import Examples
from vidrio.learn.clean import tidy
from vidrio.learn.lines import read_lines
from vidrio.learn.pairs import corpora, read
from vidrio.learn.plain import in_memory
from vidrio.learn.prepare import Prepared, made_of_others, prepare
from vidrio.learn.progress import Progress
from vidrio.learn.recipe import VOCABULARY_FOR, largest_for
from vidrio.learn.sift import Wishes
from vidrio.learn.split import key
from vidrio.learn.start import Start
from vidrio.learn.store import store
from vidrio.learn.tally import Tally
from vidrio.learn.train import Validate
from vidrio.learn.validate import Texts, validate_classes, validate_loss, validate_translation
from vidrio.text.tokenizer import Tokenizer

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
HELD_OUT = 1000  # sentences to validate with, and as many to judge the model at the end
JUDGED = 300  # of the former, translated at every validation


@dataclass(frozen=True, kw_only=True)
class Material:
    """What the user gives to learn from."""

    names: tuple[str, ...]
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: tuple[str, str] | None = None
    languages: tuple[str, str] = ("", "")
    tokenizer: str = "bpe"
    vocabulary: int = 0  # 0: by the number of pairs
    separate: bool = False  # a vocabulary for each side
    lowercase: bool = False
    clean: Wishes = field(default_factory=Wishes)
    start: Start | None = None  # a model whose tokenizers are used, in place of new ones
    made: bool = False  # by another process, in the same folder: it only has to be read


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a run learns from, ready."""

    kind: str
    key: str  # of the data: another key is other data
    source: Tokenizer | None
    target: Tokenizer | None
    examples: Examples
    validate: Validate
    test: Sequence[tuple[str, str]] = ()
    held_out: Sequence[tuple[str, str]] = ()  # texts to validate with, and their translations, their classes or nothing
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


def translation(run: Path, material: Material, progress: Progress) -> Task:
    """Sentence pairs, cleaned, held out, encoded; on disk."""
    given = corpora(material.names, columns=material.columns, languages=material.languages)
    dev, test = (corpora(names, columns=material.columns) if names else [] for names in (material.dev, material.test))
    wishes = replace(
        material.clean,
        languages=material.languages,
        held_out=(0 if dev else HELD_OUT, 0 if test else HELD_OUT),
        apart=(*dev, *test),
        least=FEWEST,
    )
    prepared = prepare(run / "data", given, wishes, progress, made=material.made)
    if not prepared.pairs["train"]:
        raise DataError(
            "nothing is left to learn from", found=f"{prepared.tally.read:,} pairs read", do="see data.json"
        )
    dev_pairs, test_pairs = (
        [(tidy(pair.source), tidy(pair.target)) for corpus in files for pair in read(corpus, Tally())]
        if files
        else prepared.read(part)
        for files, part in ((dev, "dev"), (test, "test"))
    )
    if not dev_pairs:
        raise DataError(
            "there are too few pairs to hold some out for validation",
            found=f"{prepared.pairs['train']:,} to learn from",
            do="give more pairs, or a validation set with --dev",
        )
    source, target = pair_tokenizers(run, prepared, material)
    stored = store(prepared, source, target, progress)
    held_out = in_memory(
        list(
            zip(
                *(t.encode_batch(side) for t, side in zip((source, target), zip(*dev_pairs, strict=True), strict=True)),
                strict=True,
            )
        )
    )
    texts = Texts([s for s, _ in dev_pairs], [t for _, t in dev_pairs], target.decode)
    return Task(
        kind="translate",
        key=prepared.key,
        source=source,
        target=target,
        examples=Examples(stored.source, stored.target, [(share.pairs, share.weight) for share in prepared.shares]),
        validate=validate_translation(held_out, texts, JUDGED),
        held_out=dev_pairs,
        test=test_pairs,
        tally=prepared.tally,
        pairs=prepared.pairs,
    )


def pair_tokenizers(run: Path, prepared: Prepared, material: Material) -> tuple[Tokenizer, Tokenizer]:
    """One tokenizer for both sides, or one for each; learned from the training pairs."""

    def side(n: int) -> Iterator[str]:
        with prepared.path("train").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1].split("\t")[n]

    def both() -> Iterator[str]:
        yield from side(0)
        yield from side(1)

    size, wish = vocabulary_size(material, prepared.pairs["train"]), (material, prepared.key)
    if material.start:
        return material.start.tokenizers()
    if not material.separate:
        one = learned(run / "tokenizer.json", both, size, *wish)
        return one, one
    names = ("tokenizer.json", "target-tokenizer.json")
    source, target = (learned(run / name, partial(side, n), size, *wish) for n, name in enumerate(names))
    return source, target


def vocabulary_size(material: Material, pairs: int) -> int:
    return material.vocabulary or int(largest_for(VOCABULARY_FOR, pairs))


def learned(path: Path, texts: Callable[[], Iterable[str]], size: int, material: Material, key: str) -> Tokenizer:
    """The tokenizer that lies there already from the same data and wishes, or a new one."""
    stamp = path.with_suffix(".key")
    wish = sha256(repr((key, material.tokenizer, size, material.lowercase, material.separate)).encode()).hexdigest()
    if path.exists() and stamp.exists() and stamp.read_text() == wish:
        return Tokenizer.load(path)
    if material.made:
        raise made_of_others(path)
    tokenizer = Tokenizer.learn(texts(), material.tokenizer, size, lowercase=material.lowercase)
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(path)
    stamp.write_text(wish)
    return tokenizer


# --- tasks whose data fits into memory --------------------------------------------------------------------------------


def classification(run: Path, material: Material, progress: Progress) -> Task:
    """Texts with their classes: two columns, text and label."""
    tally, found = Tally(), {}
    for corpus in corpora(material.names, columns=material.columns):
        for pair in read(corpus, tally):
            text, label = tidy(pair.source), tidy(pair.target)
            if not text or not label:
                tally.skip("empty", f"{corpus.name}:{pair.line}", text, label)
            elif text in found:
                tally.skip("duplicate", f"{corpus.name}:{pair.line}", text, label)
            else:
                found[text] = label
    labels = tuple(sorted(set(found.values())))
    if len(labels) < 2 or len(found) < FEWEST:
        raise DataError(
            "there is nothing to tell apart",
            found=f"{len(found):,} texts of {len(labels)} classes",
            do=f"give at least {FEWEST} texts of two classes, as text<TAB>class",
        )
    train, dev, data_key = divided(list(found), [found[text] for text in found], tally)
    tokenizer = learned(
        run / "tokenizer.json", lambda: train, vocabulary_size(material, len(train)), material, data_key
    )
    examples, held_out = (
        in_memory(
            [(ids, [labels.index(found[text])]) for text, ids in zip(texts, tokenizer.encode_batch(texts), strict=True)]
        )
        for texts in (train, dev)
    )
    return Task(
        kind="classify",
        key=data_key,
        source=tokenizer,
        target=None,
        examples=examples,
        validate=validate_classes(held_out),
        held_out=[(text, found[text]) for text in dev],
        labels=labels,
        tally=tally,
        pairs={"train": len(train), "dev": len(dev), "test": 0},
    )


def generation(run: Path, material: Material, progress: Progress) -> Task:
    """Texts to write like, one a line."""
    tally, found = Tally(), {}
    for name in material.names:
        for line in read_lines(Path(name)):
            tally.read += 1
            text = tidy(line.text)
            reason = line.fault or ("empty" if not text else "duplicate" if text in found else "")
            if reason:
                tally.skip(reason, f"{name}:{line.number}", line.text)
            else:
                found[text] = True
    if len(found) < FEWEST:
        raise DataError(
            "there are too few texts to learn from", found=f"{len(found)} lines", do=f"give {FEWEST} or more"
        )
    train, dev, data_key = divided(list(found), [""] * len(found), tally)
    tokenizer = learned(
        run / "tokenizer.json", lambda: train, vocabulary_size(material, len(train)), material, data_key
    )
    examples, held_out = (in_memory([([], ids) for ids in tokenizer.encode_batch(texts)]) for texts in (train, dev))
    return Task(
        kind="generate",
        key=data_key,
        source=None,
        target=tokenizer,
        examples=examples,
        validate=validate_loss(held_out),
        held_out=[(text, "") for text in dev],
        tally=tally,
        pairs={"train": len(train), "dev": len(dev), "test": 0},
    )


def divided(texts: list[str], others: list[str], tally: Tally) -> tuple[list[str], list[str], str]:
    """(texts to learn from, held-out ones, a checksum of all): by checksum, so that no random number decides."""
    tally.kept = len(texts)
    wanted = min(HELD_OUT, len(texts) // 10)
    chosen = set(sorted(texts, key=key)[:wanted])
    whole = sha256(
        "\n".join(f"{text}\t{other}" for text, other in zip(texts, others, strict=True)).encode()
    ).hexdigest()
    return [text for text in texts if text not in chosen], [text for text in texts if text in chosen], whole


TASKS = {"translate": translation, "classify": classification, "generate": generation}

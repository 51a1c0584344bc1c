"""From the user's files to something to learn from: for translating, for telling classes, for writing on.

Each task ends up the same: examples, held-out ones, tokenizers, and a function that says how good a model is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from vidrio.data.clean import tidy
from vidrio.data.lines import read_lines
from vidrio.data.pairs import corpora, read
from vidrio.data.prepare import Prepared, key_of, made_of_others, prepare
from vidrio.data.progress import Progress
from vidrio.data.select import Wishes, within
from vidrio.data.skipped import Tally
from vidrio.data.split import key
from vidrio.data.store import store
from vidrio.errors import DataError, RunError
from vidrio.learn.batches import Examples
from vidrio.learn.plain import in_memory
from vidrio.learn.run.loop import Validate
from vidrio.learn.run.recipe import VOCABULARY_FOR, largest_for
from vidrio.learn.run.start import Start
from vidrio.learn.run.validate import Texts, validate_classes, validate_loss, validate_translation
from vidrio.text.fold import fold
from vidrio.text.tokens.tokenizer import Tokenizer

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
HELD_OUT = 1000  # sentences to validate with, and as many to judge the model at the end
JUDGED = 300  # of the former, translated at every validation


@dataclass(frozen=True)
class Begun:
    """What a run that goes on was begun with: other data are refused before anything of it is altered."""

    data: str  # their key
    tokenizers: Sequence[str]  # their fingerprints


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
    begun: Begun | None = None  # the run that goes on


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a run learns from, ready."""

    kind: str
    key: str  # of the data: another key is other data
    source: Tokenizer | None
    target: Tokenizer | None
    examples: Examples
    validate: Validate
    judge: Validate | None = None  # the finished model, where nothing has to be translated for it
    test: Sequence[tuple[str, str]] = ()  # texts to judge with, and their translations, their classes or nothing
    held_out: Sequence[tuple[str, str]] = ()  # the same to validate with
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
    hold(material, data=key_of(given, wishes))
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
    source, target = pair_tokenizers(run, prepared, material, progress)
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


def pair_tokenizers(
    run: Path, prepared: Prepared, material: Material, progress: Progress
) -> tuple[Tokenizer, Tokenizer]:
    """One tokenizer for both sides, or one for each; learned from the training pairs."""

    def side(n: int) -> Iterator[str]:
        with prepared.path("train").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1].split("\t")[n]

    def both() -> Iterator[str]:
        yield from side(0)
        yield from side(1)

    size, wish = vocabulary_size(material, prepared.pairs["train"]), (material, prepared.key, progress)
    if material.start:
        source, target = material.start.tokenizers()
        hold(material, tokenizers=(source, target))
        return source, target
    if not material.separate:
        one = learned(run / "tokenizer.json", both, size, *wish)
        return one, one
    names = ("tokenizer.json", "target-tokenizer.json")
    source, target = (learned(run / name, partial(side, n), size, *wish) for n, name in enumerate(names))
    return source, target


def vocabulary_size(material: Material, pairs: int) -> int:
    return material.vocabulary or int(largest_for(VOCABULARY_FOR, pairs))


def learned(
    path: Path, texts: Callable[[], Iterable[str]], size: int, material: Material, key: str, progress: Progress
) -> Tokenizer:
    """The tokenizer that lies there already from the same data and wishes, or a new one."""
    stamp = path.with_suffix(".key")
    wish = sha256(repr((key, material.tokenizer, size, material.lowercase, material.separate)).encode()).hexdigest()
    if path.exists() and stamp.exists() and stamp.read_text() == wish:
        return Tokenizer.load(path)
    if material.made:
        raise made_of_others(path)
    with progress("learning the tokenizer", 0):
        tokenizer = Tokenizer.learn(texts(), material.tokenizer, size, lowercase=material.lowercase)
    hold(material, tokenizers=(tokenizer,))
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(path)
    stamp.write_text(wish)
    return tokenizer


def hold(material: Material, *, data: str = "", tokenizers: Sequence[Tokenizer] = ()) -> None:
    """Refuse other data than the run that goes on was begun with."""
    begun = material.begun
    if begun is None:
        return
    if data and data != begun.data:
        raise cannot_change(["the sentence pairs or how they are cleaned"])
    if any(tokenizer.fingerprint() not in begun.tokenizers for tokenizer in tokenizers):
        raise cannot_change(["the tokenizer"])


def cannot_change(what: Sequence[str]) -> RunError:
    """What is given now would make another run of it."""
    return RunError(
        "a run that has begun cannot change this",
        found="; ".join(what),
        do="give the same as before, or another folder with --to",
    )


# --- tasks whose data fits into memory --------------------------------------------------------------------------------

Labelled = dict[str, str]  # text → its class, or nothing


def classification(run: Path, material: Material, progress: Progress) -> Task:
    """Texts with their classes: two columns, text and label."""

    def read_labelled(names: Sequence[str], tally: Tally) -> Labelled:
        found: Labelled = {}
        for corpus in corpora(names, columns=material.columns):
            for pair in read(corpus, tally):
                text, label = tidy(pair.source), tidy(pair.target)
                if not text or not label:
                    tally.skip("empty", f"{corpus.name}:{pair.line}", text, label)
                elif text in found:
                    tally.skip("duplicate", f"{corpus.name}:{pair.line}", text, label)
                else:
                    found[text] = label
        return found

    parts = divided(material, read_labelled)
    own = [
        parts.train,
        *(part for part, names in ((parts.dev, material.dev), (parts.test, material.test)) if not names),
    ]
    labels = tuple(sorted({label for part in own for label in part.values()}))
    if len(labels) < 2:
        raise DataError(
            "there is nothing to tell apart",
            found=f"{sum(map(len, own)):,} texts of {len(labels)} classes",
            do=f"give at least {FEWEST} texts of two classes, as text<TAB>class",
        )
    unknown = sorted({*parts.dev.values(), *parts.test.values()} - {*labels})
    if unknown:
        raise DataError(
            "there are classes that nothing is learned of",
            found=", ".join(unknown[:10]) + (" …" if len(unknown) > 10 else ""),
            do="give texts of these classes to learn from, or leave them out of --dev and --test",
        )
    tokenizer = tokenizer_of(run, material, parts, progress)

    def examples(part: Labelled) -> Examples:
        rows = zip(tokenizer.encode_batch(list(part)), part.values(), strict=True)
        return in_memory([(ids, [labels.index(label)]) for ids, label in rows])

    return parts.task(
        kind="classify",
        source=tokenizer,
        examples=examples(parts.train),
        validate=validate_classes(examples(parts.dev)),
        judge=validate_classes(examples(parts.test), progress),
        labels=labels,
    )


def generation(run: Path, material: Material, progress: Progress) -> Task:
    """Texts to write like, one a line."""

    def read_texts(names: Sequence[str], tally: Tally) -> Labelled:
        found: Labelled = {}
        for name in names:
            for line in read_lines(Path(name)):
                tally.read += 1
                text = tidy(line.text)
                reason = line.fault or ("empty" if not text else "duplicate" if text in found else "")
                if reason:
                    tally.skip(reason, f"{name}:{line.number}", line.text)
                else:
                    found[text] = ""
        return found

    parts = divided(material, read_texts)
    tokenizer = tokenizer_of(run, material, parts, progress)

    def examples(part: Labelled) -> Examples:
        return in_memory([([], ids) for ids in tokenizer.encode_batch(list(part))])

    return parts.task(
        kind="generate",
        target=tokenizer,
        examples=examples(parts.train),
        validate=validate_loss(examples(parts.dev)),
        judge=validate_loss(examples(parts.test), progress),
    )


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Texts to learn from, to validate with, to judge the finished model with; and a checksum of all."""

    train: Labelled
    dev: Labelled
    test: Labelled
    key: str
    tally: Tally

    def task(
        self,
        *,
        kind: str,
        examples: Examples,
        validate: Validate,
        judge: Validate,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        labels: tuple[str, ...] = (),
    ) -> Task:
        return Task(
            kind=kind,
            key=self.key,
            source=source,
            target=target,
            examples=examples,
            validate=validate,
            judge=judge,
            test=list(self.test.items()),
            held_out=list(self.dev.items()),
            labels=labels,
            tally=self.tally,
            pairs={"train": len(self.train), "dev": len(self.dev), "test": len(self.test)},
        )


def divided(material: Material, read_some: Callable[[Sequence[str], Tally], Labelled]) -> Parts:
    """The texts, and those held out: given ones, or chosen by checksum, so that no random number decides."""
    tally = Tally()
    found = read_some(material.names, tally)
    given = [read_some(names, Tally()) if names else None for names in (material.dev, material.test)]
    for names, part in zip((material.dev, material.test), given, strict=True):
        if part is not None and not part:
            raise DataError("there is nothing to judge with", found=f"no text in {', '.join(names)}", do="give others")
    apart = {fold(text) for part in given for text in part or ()}
    for text in [text for text in found if fold(text) in apart]:
        tally.skip("stands in a held-out set", "", text, found.pop(text))
    if len(found) < FEWEST:
        raise DataError(
            "there are too few texts to learn from", found=f"{len(found)} of them", do=f"give {FEWEST} or more"
        )
    tally.kept = len(found)
    wanted = within(tuple(0 if part is not None else HELD_OUT for part in given), len(found))
    by_checksum = iter(sorted(found, key=key))
    chosen = [{next(by_checksum) for _ in range(count)} for count in wanted]
    held = [
        {text: other for text, other in found.items() if text in some} if part is None else part
        for part, some in zip(given, chosen, strict=True)
    ]
    train = {text: other for text, other in found.items() if not any(text in some for some in chosen)}
    whole = sha256(repr([list(part.items()) for part in (train, *held)]).encode()).hexdigest()
    hold(material, data=whole)
    return Parts(train=train, dev=held[0], test=held[1], key=whole, tally=tally)


def tokenizer_of(run: Path, material: Material, parts: Parts, progress: Progress) -> Tokenizer:
    """The tokenizer of the texts that are learned from."""
    size = vocabulary_size(material, len(parts.train))
    return learned(run / "tokenizer.json", lambda: parts.train, size, material, parts.key, progress)


TASKS = {"translate": translation, "classify": classification, "generate": generation}

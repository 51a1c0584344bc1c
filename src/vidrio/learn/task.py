"""From files of sentence pairs to something to learn from: cleaned, held out, encoded. Other texts: `prepare_texts.py`.

Each task ends up the same: examples, held-out ones, tokenizers, and a function that says how good a model is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vidrio.data.clean import Tally, tidy
from vidrio.data.pairs import corpora, read
from vidrio.data.prepare import Prepared, both_sides, key_of, made_of_others, prepare
from vidrio.data.progress import Progress, Work
from vidrio.data.store import Examples, in_memory, store
from vidrio.errors import DataError
from vidrio.learn.run.plan import Plan, cannot_change
from vidrio.learn.run.request import Material, Start
from vidrio.learn.run.validate import Translations, Validate
from vidrio.model.files import write_atomically
from vidrio.text.tokens.tokenizer import Tokenizer

FEWEST = 20  # pairs; from fewer there is nothing to learn and nothing to hold out
HELD_OUT = 1000  # sentences to validate with, and as many to judge the model at the end
JUDGED = 300  # of the former, translated at every validation
COUNTED = 100_000  # pairs in which words are counted
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
    left_out: dict[str, int]  # by reason
    pairs: dict[str, int]
    repeats: float = 0.0  # of each word, on average, where something is translated
    fingerprints: list[str]  # of its tokenizers


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
    asked, right = source.encode_batch(sources), target.encode_batch(targets)
    held_out = in_memory(list(zip(asked, right, strict=True)))
    return Task(
        kind="translate",
        key=prepared.key,
        source=source,
        target=target,
        examples=stored,
        validate=Translations(held_out, dev_pairs, asked, target.decode, JUDGED),
        held_out=dev_pairs,
        test=test_pairs,
        tally=prepared.tally,
        left_out=dict(prepared.tally.reasons()),
        pairs=prepared.pairs,
        repeats=repeats_of_words(prepared.path("train")),
        fingerprints=[source.fingerprint(), target.fingerprint()],
    )


def repeats_of_words(pairs: Path) -> float:
    """How often each word stands in the pairs, on average; of large data, in the first of them."""
    words, count = set[str](), 0
    with pairs.open(encoding="utf-8", newline="\n") as lines:
        for line in islice(lines, COUNTED):
            some = line.split()
            words.update(some)
            count += len(some)
    return count / max(1, len(words))


def describe(task: Task) -> list[str]:
    """What was read, and what was left out and why."""
    tally = task.tally
    held = {"dev": "to validate", "test": "to judge the finished model"}
    parts = [f"{task.pairs[part]:,} {says}" for part, says in held.items() if task.pairs[part]]
    return [
        f"read {tally.read:,} {'lines' if task.kind == 'generate' else 'pairs'}, kept {tally.kept:,}",
        *(f"  left out {count:,}: {reason}" for reason, count in task.left_out.items()),
        *tally.notes(),
        f"to learn from: {task.pairs['train']:,}; held out: {', '.join(parts) or 'given files'}",
    ]


def _learn_tokenizers(
    folder: DataFolder, prepared: Prepared, material: Material, progress: Progress
) -> tuple[Tokenizer, Tokenizer]:
    """One tokenizer for both sides, or one for each; learned from the training pairs."""
    data = prepared.key, prepared.pairs["train"]
    sources = (source for source, _ in both_sides(prepared.path("train")))
    targets = (target for _, target in both_sides(prepared.path("train")))
    if material.separate:
        source = learn_tokenizer(folder, material, progress, data, sources)
        return source, learn_tokenizer(folder, material, progress, data, targets, "target-tokenizer.json")
    both = learn_tokenizer(folder, material, progress, data, chain(sources, targets))
    return both, both


def learn_tokenizer(
    folder: DataFolder,
    material: Material,
    progress: Progress,
    data: tuple[str, int],
    texts: Iterable[str],
    name: str = "tokenizer.json",
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
    progress.work = Work("learning the tokenizer")
    tokenizer = Tokenizer.learn(texts, material.tokenizer, size)
    progress.work = None
    folder.hold(tokenizers=(tokenizer,))
    tokenizer.save(path)
    write_atomically(stamp, wish.encode())
    return tokenizer


def largest_for(table: dict[Any, int], amount: int) -> Any:
    """The last entry of a table whose threshold the amount reaches."""
    return [name for name, threshold in table.items() if amount >= threshold][-1]

"""From the user's texts to something to learn from, where nothing is translated: telling classes, and writing on.

Their data fit into memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from vidrio.data.clean import Tally, tidy
from vidrio.data.lines import read_lines
from vidrio.data.pairs import corpora, read
from vidrio.data.prepare import within
from vidrio.data.progress import Progress
from vidrio.data.split import key
from vidrio.data.store import Examples, in_memory
from vidrio.errors import DataError
from vidrio.learn.run.prepare import FEWEST, HELD_OUT, DataFolder, Task, learn_tokenizer
from vidrio.learn.run.request import Material
from vidrio.learn.run.validate import Classes, Loss, Validate
from vidrio.text.fold import fold
from vidrio.text.tokens.tokenizer import Tokenizer

Labelled = dict[str, str]  # text → its class, or nothing


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Texts to learn from, to validate with, to judge the finished model with; and a checksum of all."""

    train: Labelled
    dev: Labelled
    test: Labelled
    key: str
    tally: Tally

    def tokenizer(self, folder: DataFolder, material: Material, progress: Progress) -> Tokenizer:
        """Learned from the texts that are learned from."""
        return learn_tokenizer(folder, material, progress, (self.key, len(self.train)), self.train)

    def task(self, kind: str, tokenizer: Tokenizer, examples: Examples, judges: tuple[Validate, Validate]) -> Task:
        """What is learned from them; the functions judge by those to validate with, and by those of the end."""
        return Task(
            kind=kind,
            key=self.key,
            source=tokenizer if kind == "classify" else None,
            target=tokenizer if kind == "generate" else None,
            examples=examples,
            validate=judges[0],
            judge=judges[1],
            test=list(self.test.items()),
            held_out=list(self.dev.items()),
            tally=self.tally,
            left_out=dict(self.tally.reasons()),
            pairs={"train": len(self.train), "dev": len(self.dev), "test": len(self.test)},
            fingerprints=[tokenizer.fingerprint()],
        )


def classes(folder: DataFolder, material: Material, progress: Progress) -> Task:
    """Texts with their classes: two columns, text and label."""
    parts = _divided(folder, material, partial(_read_labelled, material))
    given = {"train": (), "dev": material.dev, "test": material.test}
    own = [part for name, part in (("train", parts.train), ("dev", parts.dev), ("test", parts.test)) if not given[name]]
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
    tokenizer = parts.tokenizer(folder, material, progress)
    train, dev, test = (
        in_memory(
            [
                (ids, [labels.index(label)])
                for ids, label in zip(tokenizer.encode_batch(list(part)), part.values(), strict=True)
            ]
        )
        for part in (parts.train, parts.dev, parts.test)
    )
    return replace(parts.task("classify", tokenizer, train, (Classes(dev), Classes(test))), labels=labels)


def _read_labelled(material: Material, names: Sequence[str], tally: Tally) -> Labelled:
    texts_read: Labelled = {}
    for corpus in corpora(names, columns=material.columns):
        for pair in read(corpus, tally):
            text, label = tidy(pair.source), tidy(pair.target)
            if not text or not label:
                tally.skip("empty", f"{corpus.name}:{pair.line}", text, label)
            elif text in texts_read:
                tally.skip("duplicate", f"{corpus.name}:{pair.line}", text, label)
            else:
                texts_read[text] = label
    return texts_read


def texts(folder: DataFolder, material: Material, progress: Progress) -> Task:
    """Texts to write like, one a line."""
    parts = _divided(folder, material, _read_texts)
    tokenizer = parts.tokenizer(folder, material, progress)
    train, dev, test = (
        in_memory([([], ids) for ids in tokenizer.encode_batch(list(part))])
        for part in (parts.train, parts.dev, parts.test)
    )
    return parts.task("generate", tokenizer, train, (Loss(dev), Loss(test)))


def _read_texts(names: Sequence[str], tally: Tally) -> Labelled:
    texts_read: Labelled = {}
    for name in names:
        for line in read_lines(Path(name)):
            tally.read += 1
            text = tidy(line.text)
            reason = line.fault or ("empty" if not text else "duplicate" if text in texts_read else "")
            if reason:
                tally.skip(reason, f"{name}:{line.number}", line.text)
            else:
                texts_read[text] = ""
    return texts_read


def _divided(folder: DataFolder, material: Material, read_some: Callable[[Sequence[str], Tally], Labelled]) -> Parts:
    """The texts, and those held out: given ones, or chosen by checksum, so that no random number decides."""
    tally = Tally()
    texts_read = read_some(material.names, tally)
    given = [read_some(names, Tally()) if names else None for names in (material.dev, material.test)]
    for names, part in zip((material.dev, material.test), given, strict=True):
        if part is not None and not part:
            raise DataError("there is nothing to judge with", found=f"no text in {', '.join(names)}", do="give others")
    apart = {fold(text) for part in given for text in part or ()}
    for text in [text for text in texts_read if fold(text) in apart]:
        tally.skip("stands in a held-out set", "", text, texts_read.pop(text))
    if len(texts_read) < FEWEST:
        raise DataError(
            "there are too few texts to learn from", found=f"{len(texts_read)} of them", do=f"give {FEWEST} or more"
        )
    tally.kept = len(texts_read)
    wanted = within(tuple(0 if part is not None else HELD_OUT for part in given), len(texts_read))
    by_checksum = iter(sorted(texts_read, key=key))
    chosen = [{next(by_checksum) for _ in range(count)} for count in wanted]
    held = [
        {text: other for text, other in texts_read.items() if text in some} if part is None else part
        for part, some in zip(given, chosen, strict=True)
    ]
    train = {text: other for text, other in texts_read.items() if not any(text in some for some in chosen)}
    checksum = sha256(repr([list(part.items()) for part in (train, *held)]).encode()).hexdigest()
    folder.hold(data=checksum)
    return Parts(train=train, dev=held[0], test=held[1], key=checksum, tally=tally)

"""From the user's texts to something to learn from, where nothing is translated: telling classes, and writing on.

Their data fit into memory.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path

from vidrio.data.clean import Tally, tidy
from vidrio.data.lines import read_lines
from vidrio.data.pairs import corpora, read
from vidrio.data.prepare import PARTS, within
from vidrio.data.progress import Progress
from vidrio.data.split import key
from vidrio.data.store import in_memory
from vidrio.errors import DataError
from vidrio.learn.run.prepare import FEWEST, HELD_OUT, DataFolder, Task, learn_tokenizer
from vidrio.learn.run.request import Material
from vidrio.learn.run.validate import Classes, Loss
from vidrio.text.fold import fold

Labelled = dict[str, str]  # text → its class, or nothing


def texts(folder: DataFolder, material: Material, kind: str, progress: Progress) -> Task:
    """Texts to tell the classes of (two columns, text and label), or to write like (one a line)."""
    tally, classify = Tally(), kind == "classify"
    parts = _divided(material, classify, tally)
    checksum = sha256(repr([list(part.items()) for part in parts]).encode()).hexdigest()
    folder.hold(data=checksum)
    labels = _labels(material, *parts) if classify else ()
    tokenizer = learn_tokenizer(folder, material, progress, (checksum, len(parts[0])), parts[0])
    examples = []
    for part in parts:
        ids = tokenizer.encode_batch(list(part))
        if classify:
            examples.append(in_memory([(i, [labels.index(c)]) for i, c in zip(ids, part.values(), strict=True)]))
        else:
            examples.append(in_memory([([], i) for i in ids]))
    judge = Classes if classify else Loss
    return Task(
        kind=kind,
        key=checksum,
        source=tokenizer if classify else None,
        target=None if classify else tokenizer,
        examples=examples[0],
        validate=judge(examples[1]),
        judge=judge(examples[2]),
        test=list(parts[2].items()),
        held_out=list(parts[1].items()),
        labels=labels,
        tally=tally,
        left_out=dict(tally.reasons()),
        pairs=dict(zip(PARTS, map(len, parts), strict=True)),
        fingerprints=[tokenizer.fingerprint()],
    )


def _labels(material: Material, train: Labelled, dev: Labelled, test: Labelled) -> tuple[str, ...]:
    """The classes that can be learned: of all texts but those of given sets, which may have no others."""
    own = [train, *(part for part, names in ((dev, material.dev), (test, material.test)) if not names)]
    labels = tuple(sorted({label for part in own for label in part.values()}))
    if len(labels) < 2:
        raise DataError(
            "there is nothing to tell apart",
            found=f"{sum(map(len, own)):,} texts of {len(labels)} classes",
            do=f"give at least {FEWEST} texts of two classes, as text<TAB>class",
        )
    unknown = sorted({*dev.values(), *test.values()} - {*labels})
    if unknown:
        raise DataError(
            "there are classes that nothing is learned of",
            found=", ".join(unknown[:10]) + (" …" if len(unknown) > 10 else ""),
            do="give texts of these classes to learn from, or leave them out of --dev and --test",
        )
    return labels


def _divided(material: Material, classify: bool, tally: Tally) -> tuple[Labelled, Labelled, Labelled]:
    """The texts to learn from, to validate with and to judge the finished model with. Those held out are given, or
    chosen by checksum, so that no random number decides."""

    def different(names: Sequence[str], tally: Tally) -> Labelled:
        found: Labelled = {}
        for place, text, label in _rows(material, classify, names, tally):
            if not text or (classify and not label):
                tally.skip("empty", place, text, label)
            elif text in found:
                tally.skip("duplicate", place, text, label)
            else:
                found[text] = label
        return found

    train = different(material.names, tally)
    given = [different(names, Tally()) for names in (material.dev, material.test)]
    for names, part in zip((material.dev, material.test), given, strict=True):
        if names and not part:
            raise DataError("there is nothing to judge with", found=f"no text in {', '.join(names)}", do="give others")
    apart = {fold(text) for part in given for text in part}
    for text in [text for text in train if fold(text) in apart]:
        tally.skip("stands in a held-out set", "", text, train.pop(text))
    if len(train) < FEWEST:
        raise DataError(
            "there are too few texts to learn from", found=f"{len(train)} of them", do=f"give {FEWEST} or more"
        )
    tally.kept = len(train)
    by_checksum = iter(sorted(train, key=key))
    wanted = within(tuple(0 if part else HELD_OUT for part in given), len(train))
    chosen = [set(islice(by_checksum, count)) for count in wanted]
    dev, test = (
        part or {text: label for text, label in train.items() if text in some}
        for part, some in zip(given, chosen, strict=True)
    )
    return {text: label for text, label in train.items() if not any(text in some for some in chosen)}, dev, test


def _rows(material: Material, classify: bool, names: Sequence[str], tally: Tally) -> Iterator[tuple[str, str, str]]:
    """Place, text and label of the rows of tables; or of the lines of texts, which have no label."""
    if classify:
        for corpus in corpora(names, columns=material.columns) if names else ():
            for pair in read(corpus, tally):
                yield f"{corpus.name}:{pair.line}", tidy(pair.source), tidy(pair.target)
        return
    for name in names:
        for line in read_lines(Path(name)):
            tally.read += 1
            if line.fault:
                tally.skip(line.fault, f"{name}:{line.number}", line.text)
            else:
                yield f"{name}:{line.number}", tidy(line.text), ""

"""Test that every Python message on the page has a Spanish translation: tensors, searches, what-ifs and errors."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from small_models import write_model
from vidrio.errors import VidrioError
from vidrio.glass import changes, whatif
from vidrio.glass.declaration import stages_of
from vidrio.glass.operations import Operation
from vidrio.glass.receipts import locate, receipt
from vidrio.glass.trace import parse_address
from vidrio.glass.words import FORMULAS, OF_CLASSES, PARAMETERS, QUANTITIES
from vidrio.look.changed import look_changed
from vidrio.look.run import LoadedModel, default_options, look, open_model
from vidrio.look.why_word import why_word
from vidrio.search import Tree
from vidrio.serve.looking import Looking

CHANGES = [
    *(("without", what) for what in ("layer-norm", "residual", "positions", "scaling", "embedding-scale", "cross")),
    *(("softmax", kind) for kind in whatif.CHOICES["softmax"]),
    *(("mask", kind) for kind in whatif.CHOICES["mask"]),
    *(("positions", kind) for kind in ("sinusoidal", "sinusoidal-halves", "sinusoidal-marian", "none", "seed")),
    *(("change-dtype", kind) for kind in whatif.CHOICES["change-dtype"]),
    ("without", "ffn"), ("without", "enc.0.ffn"), ("heads-off", "enc.0.self.h0"), ("divisor", "30"),
    ("heads-off", "enc.0.self.h0,enc.0.self.h1"), ("norm-epsilon", "0.1"), ("set", "enc.0.ffn.W1[0,0]=3"),
    ("scale", "enc.0.ffn.out=3"), ("prefix", "mundo"), ("pin", "hola"), ("draw", "temperature=2"),
]  # fmt: skip


@pytest.fixture(scope="module")
def spanish(repository: Path) -> dict[str, str]:
    source = (repository / "page/src/lib/words.es.ts").read_text("utf-8")
    found = re.findall(r'^  (?:"(.+?)"|(\w+)):\s+"(.+?)",$', source, re.MULTILINE)
    return {quoted or bare: translation for quoted, bare, translation in found}


@pytest.fixture(scope="module")
def patterns(spanish: dict[str, str]) -> list[re.Pattern[str]]:
    return [re.compile("(.+?)".join(map(re.escape, english.split("{}")))) for english in spanish]


@pytest.fixture(scope="module")
def lesson() -> LoadedModel:
    return open_model("lesson")


def untold(texts: Iterator[str], patterns: list[re.Pattern[str]]) -> set[str]:
    return {text for text in texts if text and not any(pattern.fullmatch(text) for pattern in patterns)}


def test_every_place_holder_has_its_counterpart(spanish: dict[str, str]) -> None:
    assert len(spanish) > 130
    for english, other in spanish.items():
        assert english.count("{}") == other.count("{}"), english


def test_quantities(patterns: list[re.Pattern[str]], tmp_path: Path) -> None:
    write_model(tmp_path / "encoder", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    write_model(tmp_path / "pre", norm="pre", positions="learned", attention_bias=True, activation="swish")
    looking = Looking("lesson")
    machines = [looking.loaded(name, numbers).machine for name in looking.models for numbers in ("", "float64")]
    machines += [open_model(tmp_path / name).machine for name in ("encoder", "pre")]
    stages = [stage for machine in machines for stage in stages_of(machine).values()]
    assert not untold((stage.says for stage in stages), patterns)
    assert not untold((stage.place for stage in stages if "differs" in stage.place or "," in stage.place), patterns)


def test_every_operation_and_word_there_is(patterns: list[re.Pattern[str]]) -> None:
    """Check every declared formula, including those that no model in these tests uses."""
    formulas = [*FORMULAS.values(), *(row.formula for row in vars(changes).values() if isinstance(row, Operation))]
    words = (PARAMETERS | QUANTITIES).values()
    known = [*((formula.place, formula.says) for formula in formulas), *words, *OF_CLASSES.values()]
    assert len(known) > 90
    assert not untold((text for place, says in known for text in (says, in_words(place))), patterns)


def in_words(place: str) -> str:
    return "" if re.fullmatch(r"§[\d.]+", place) else place


def test_why_a_hypothesis_died(patterns: list[re.Pattern[str]], lesson: LoadedModel) -> None:
    reasons = []
    for more in ({}, {"max_length": 2}, {"prefix": tuple(lesson.target_tokenizer.encode("hola"))}):
        tree = Tree()
        look(lesson, "hello world", options=replace(default_options(lesson.config), beam=4, **more), tree=tree)
        reasons += [node.why for node in tree.nodes]
    assert len(set(reasons)) > 20
    assert not untold(iter(reasons), patterns)


def test_changes(patterns: list[re.Pattern[str]], lesson: LoadedModel) -> None:
    said = []
    for change in CHANGES:
        tried = look_changed(lesson, "hello world", [change])
        said += [*(one.says for one in tried.whatif.changes), *tried.compared.notes]
    assert not untold(iter(said), patterns)


REFUSED_CHANGES = [
    ("mask", "x"), ("softmax", "x"), ("divisor", "x"), ("without", "x"), ("heads-off", "enc.9.self.h0"), ("x", "y"),
    ("set", "enc.0.ffn.W1[0,0]"), ("set", "enc.0.ffn.W1[0]=3"), ("set", "enc.0.ffn.W1[9999,0]=3"), ("set", "???=3"),
    ("set", "src.ids[0]=3"), ("set", "enc.9=3"), ("pin", "x"),
    ("draw", "temperature=x"), ("draw", "temperature=-1"),
]  # fmt: skip
REFUSED_ADDRESSES = [
    "enc.77.in[0,0]",
    "???",
    "enc.in[0]",
    "enc.in[0,9999]",
    "enc.0",
    "out.prob[0,x]",
]


def test_what_is_refused(patterns: list[re.Pattern[str]], lesson: LoadedModel) -> None:
    seen = look(lesson, "hello world")
    trace = seen.trace
    said: list[str] = []

    def refused(work: Callable[[], object]) -> None:
        with pytest.raises(VidrioError) as error:
            work()
        said.extend((error.value.what, error.value.do))
        of_a_change = re.fullmatch(r"--[\w-]+ \S+: (.+?)(?: \((.+)\))?", error.value.found)
        said.extend(filter(None, of_a_change.groups()) if of_a_change else [error.value.found])

    for change in REFUSED_CHANGES:
        refused(lambda change=change: look_changed(lesson, "hello world", [change]))
    for address in REFUSED_ADDRESSES:
        refused(lambda address=address: receipt(trace, locate(trace, parse_address(address))))
    refused(lambda: look(lesson, "hello " * 9999))
    refused(lambda: why_word(seen, "zzz"))
    names = re.compile(r"[^ ]+(, [^ ]+)*")  # lists of available names
    assert not {text for text in untold(iter(said), patterns) if not names.fullmatch(text)}

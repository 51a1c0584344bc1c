"""Reading a lesson's values: every entry checked, and every problem kept, so that all are told at once.

What a file does not name is taken from the values that the lesson has anyway, where the sizes fit; or, if the file says
`draw = SEED`, drawn from NumPy's PCG64 with that seed.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import ConfigError, VidrioError, nearest
from vidrio.glass.paper.maths import Array
from vidrio.lessons.values import Values, draw
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.parameters import count, embedding_tables, parameter_specs
from vidrio.text.tokens.special import NONE

MOST_WORDS, MOST_NUMBERS = 1000, 1_000_000
LARGEST_NUMBER = sys.float_info.max
LARGEST = {"d_model": 64, "n_heads": 16, "d_head": 64, "d_ff": 256, "max_positions": 1024}
LARGEST |= {"n_encoder_layers": 12, "n_decoder_layers": 12}
CHOICES = ("norm", "norm_epsilon", "activation", "positions", "tying")
SWITCHES = ("scale_embeddings", "attention_bias", "output_bias", "source_end")
SPECIAL = {"start": "start", "end": "end", "unknown": "unk", "padding": "pad"}  # in the file: in the config
TOP = ("about", "sentence", "vocabulary", *SPECIAL, "draw")
TABLES = ("config", "embeddings", "generation", "src", "tgt", "enc", "dec", "out")
GREEK = {"gamma": "gain", "γ": "gain", "beta": "bias", "β": "bias"}


@dataclass
class Reader:
    """One reading of one file; it goes on after a problem, to find the others."""

    content: dict[str, Any]
    base: Values | None
    problems: list[str] = field(default_factory=list)

    def values(self) -> Values | None:
        self.refuse_unknown(self.content, [*TOP, *TABLES], "")
        vocabulary = self.vocabulary()
        config = self.config(vocabulary)
        if config is None:
            return None
        seed = self.take("draw", int, None)
        if isinstance(seed, int) and seed < 0:
            self.problem("draw", "a whole number from 0 on", str(seed))
            seed = 0
        numbers = {} if self.base is None else parts(self.base.config, self.base.vocabulary, self.base.parameters)
        if seed is not None:
            drawn = draw(parameter_specs(config), np.random.Generator(np.random.PCG64(seed)))
            numbers = parts(config, vocabulary, drawn)
        parameters = self.parameters(config, vocabulary, numbers | self.given_numbers(config, vocabulary))
        divisor = self.divisor(config)
        values = Values(
            about=self.take("about", str, "Your own values."),
            sentence=self.take("sentence", str, self.base.sentence if self.base else "hello world"),
            vocabulary=vocabulary,
            config=config,
            score_divisor=divisor,
            parameters=parameters,
            generation_VD=self.generation(config, vocabulary),
        )
        if not self.problems:
            self.check_sentence(values)
        return values

    # one entry at a time

    def problem(self, where: str, expected: str, found: str) -> None:
        self.problems.append(f"{where}: expected {expected}, found {found}")

    def take(self, key: str, kind: type, default: Any, table: str = "") -> Any:
        """An entry of the file, or of one of its tables; another one if it is not there, or not of this kind."""
        entries = self.table(table) if table else self.content
        value = entries.get(key, default)
        kinds = (int, float) if kind is float else kind
        if key in entries and (not isinstance(value, kinds) or isinstance(value, bool) != (kind is bool)):
            self.problem(f"{table}.{key}" if table else key, _KINDS[kind], _what(value))
            return default
        return value

    def divisor(self, config: ModelConfig) -> float:
        """The file's, a number above 0; else the base's, where the heads are as wide."""
        base = self.base
        default = base.score_divisor if base and base.config.d_head == config.d_head else math.sqrt(config.d_head)
        value = self.table("config").get("score_divisor", default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST_NUMBER:
            self.problem("config.score_divisor", "a number above 0", _what(value))
            return default
        return float(value)

    def table(self, key: str, inside: Mapping[str, Any] | None = None) -> dict[str, Any]:
        value = (self.content if inside is None else inside).get(key, {})
        return value if isinstance(value, dict) else {}

    def refuse_unknown(self, entries: Mapping[str, Any], valid: Sequence[str], prefix: str) -> None:
        for key, value in entries.items():
            if key not in valid:
                addresses = parameter_specs(self.base.config) if self.base and not prefix else ()
                hint = _hint(key, [*valid, *addresses])
                self.problems.append(f"{prefix}{key}: not a name of this file; nearest: {hint}")
            elif not prefix and key in TABLES and not isinstance(value, dict):
                self.problem(key, f"a table [{key}]", _what(value))

    # vocabulary and sizes

    def vocabulary(self) -> tuple[str, ...]:
        words = self.take("vocabulary", list, list(self.base.vocabulary) if self.base else [])
        wrong = [w for w in words if not isinstance(w, str) or not w or any(c.isspace() for c in w)]
        if wrong:
            self.problem("vocabulary", "words without spaces", _what(wrong[0]))
        words = [w for w in words if w not in wrong]
        if len(set(words)) < len(words):
            twice = next(word for i, word in enumerate(words) if word in words[:i])
            self.problems.append(f"vocabulary: {twice!r} is in it twice")
        if not 2 <= len(words) <= MOST_WORDS:
            self.problem("vocabulary", f"2 to {MOST_WORDS} words", str(len(words)))
        return tuple(dict.fromkeys(words))

    def config(self, vocabulary: tuple[str, ...]) -> ModelConfig | None:
        """The base's sizes and choices with those of the file; None if nothing can be built from them."""
        old = self.base.config.to_json() if self.base else {"tying": "none", "max_positions": 64}
        given = self.table("config")
        self.refuse_unknown(given, [*LARGEST, *CHOICES, *SWITCHES, "score_divisor"], "config.")
        before = len(self.problems)
        kinds: dict[str, type] = {f.name: f.type for f in fields(ModelConfig) if isinstance(f.type, type)}
        chosen = {}
        for key in (key for key in [*LARGEST, *CHOICES, *SWITCHES] if key in given):
            chosen[key] = self.take(key, kinds[key], None, "config")
            if key in LARGEST and chosen[key] is not None and not 0 < chosen[key] <= LARGEST[key]:
                self.problem(f"config.{key}", f"1 to {LARGEST[key]}", str(chosen[key]))
        special = self.special(vocabulary)
        if special is None or len(self.problems) > before:
            return None
        sizes = {"source_vocabulary": len(vocabulary), "target_vocabulary": len(vocabulary)}
        kept = {k: v for k, v in old.items() if k not in ("special", "decoding")}
        try:
            config = ModelConfig(**{**kept, **chosen, **sizes}, special=special)
        except (ConfigError, TypeError) as error:
            self.problems.append(f"config: {error.found if isinstance(error, ConfigError) else error}")
            return None
        numbers = count(config)
        if numbers > MOST_NUMBERS:
            self.problem("config", f"at most {MOST_NUMBERS:,} parameters", f"{numbers:,}")
            return None
        return config

    def special(self, vocabulary: tuple[str, ...]) -> SpecialIds | None:
        """The places of the start and end tokens, and of those for the unknown and for padding if there are any."""
        ids = {}
        for key, name in SPECIAL.items():
            old = getattr(self.base.config.special, name) if self.base else NONE
            word = self.take(key, str, None if self.base is None or old == NONE else self.base.vocabulary[old])
            if word is None and key in ("start", "end"):
                self.problems.append(f"{key} is missing: expected the word that stands for the {key}")
            elif word is not None and word not in vocabulary:
                self.problems.append(f"{key}: {word!r} is not in the vocabulary; nearest: {_near(word, vocabulary)}")
            else:
                ids[name] = NONE if word is None else vocabulary.index(word)
        if len(ids) < len(SPECIAL):
            return None
        used = [i for i in ids.values() if i != NONE]
        if len(set(used)) < len(used):
            self.problem("start, end, unknown and padding", "different words", "one used twice")
            return None
        return SpecialIds(**ids)

    def check_sentence(self, values: Values) -> None:
        try:
            length = len(values.source_ids)
        except VidrioError as error:
            self.problems.append(f"sentence: {error.what}{'; ' if error.found else ''}{error.found}")
            return
        if length > values.config.max_positions:
            self.problem("sentence", f"at most {values.config.max_positions} tokens", str(length))

    # numbers

    def given_numbers(self, config: ModelConfig, vocabulary: Sequence[str]) -> dict[str, Array]:
        """What the file names, by address; heads apart, embeddings word by word."""
        tables = list(embedding_tables(config))
        shapes = {address: at.shape for address, at in places(config, vocabulary).items() if at.name not in tables}
        given = {}
        for table in ("src", "tgt", "enc", "dec", "out"):
            for address, value in _flat(self.table(table), table):
                if address in shapes:
                    given[address] = self.array(address, value, shapes[address])
                elif not re.search(r"\.embed(\.|$)", address):  # those are read below
                    self.problems.append(f"{address}: not a number of this model; nearest: {_hint(address, [*shapes])}")
        for name in tables:
            rows = {**self.table("embeddings"), **self.table("embed", self.table(name.split(".")[0]))}
            self.refuse_unknown(rows, vocabulary, "embeddings: ")
            for word in (word for word in rows if word in vocabulary):
                given[f"{name}[{word}]"] = self.array(f"embeddings: {word}", rows[word], (config.d_model,))
        return given

    def array(self, address: str, value: Any, shape: tuple[int, ...]) -> Array:
        """Numbers of the expected shape, each of them finite; zeros where they are not."""
        actual = _nested_shape(value)
        if actual != shape:
            found = _what_is_no_number(value) if actual is None else _shape(actual)
        else:
            try:
                array = np.array(value, dtype=np.float64)
                if np.all(np.isfinite(array)):
                    return array
            except OverflowError:  # whole numbers in TOML have no bound
                pass
            found = "NaN or infinity among them"
        self.problem(address, f"{_shape(shape)} numbers", found)
        return np.zeros(shape)

    def parameters(
        self, config: ModelConfig, vocabulary: Sequence[str], numbers: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Every parameter from numbers by address: the file's, else those drawn or the base's, where they fit."""
        parameters = {name: np.empty(spec.shape) for name, spec in parameter_specs(config).items()}
        for address, at in places(config, vocabulary).items():
            if address in numbers and numbers[address].shape == at.shape:
                parameters[at.name][at.index] = numbers[address]
            else:
                self.problems.append(
                    f"{address} is missing: expected {_shape(at.shape)} numbers, and the lesson has none "
                    "of this size (`draw = 1` draws what is missing)"
                )
        return parameters

    def generation(self, config: ModelConfig, vocabulary: Sequence[str]) -> Array | None:
        """The second table of embeddings: the file's; none if the file has another first one; else the base's."""
        table = self.table("generation")
        self.refuse_unknown(table, ["embeddings"], "generation.")
        rows = self.table("embeddings", table)
        old = self.base.generation_VD if self.base and self.base.vocabulary == tuple(vocabulary) else None
        shape = (len(vocabulary), config.d_model)
        if not rows:
            own = "draw" in self.content or any(self.table(t) for t in ("embeddings", "src", "tgt"))
            return None if own or old is None or old.shape != shape else old
        self.refuse_unknown(rows, vocabulary, "generation.embeddings: ")
        table_VD = np.empty(shape)
        for i, word in enumerate(vocabulary):
            label = f"generation.embeddings: {word}"
            if word in rows:
                table_VD[i] = self.array(label, rows[word], shape[1:])
            else:
                self.problems.append(f"{label} is missing: expected {_shape(shape[1:])} numbers")
        return table_VD


class Place(NamedTuple):
    """Where the numbers of an address stand: a head of a parameter, a word's row of a table, or all of a parameter."""

    name: str
    index: Any
    shape: tuple[int, ...]


def places(config: ModelConfig, vocabulary: Sequence[str]) -> dict[str, Place]:
    """The place of every number's address, in the order of `parameter_specs`."""
    tables = set(embedding_tables(config))
    by_address: dict[str, Place] = {}
    for name, (axes, shape) in parameter_specs(config).items():
        if name in tables:
            by_address |= {f"{name}[{word}]": Place(name, i, shape[1:]) for i, word in enumerate(vocabulary)}
        elif axes[0] == "H":
            by_address |= {f"{name}.h{h}": Place(name, h, shape[1:]) for h in range(shape[0])}
        else:
            by_address[name] = Place(name, ..., shape)
    return by_address


def parts(config: ModelConfig, vocabulary: Sequence[str], parameters: Mapping[str, Array]) -> dict[str, Array]:
    """The numbers by address."""
    return {address: parameters[at.name][at.index] for address, at in places(config, vocabulary).items()}


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}.{key}")
        else:
            yield f"{prefix}.{key}", value


def _nested_shape(value: Any) -> tuple[int, ...] | None:
    """The shape of numbers in lists in lists; None if they are ragged, or not numbers."""
    if isinstance(value, list):
        inner = {_nested_shape(part) for part in value}
        if len(inner) != 1 or None in inner:
            return None
        return (len(value), *(inner.pop() or ()))
    return () if isinstance(value, int | float) and not isinstance(value, bool) else None


_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}
_KINDS |= {dict: "a table"}


def _what(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{_KINDS.get(type(value), type(value).__name__)}: {text if len(text) <= 40 else text[:39] + '…'}"


def _what_is_no_number(value: Any) -> str:
    if isinstance(value, list):
        rows = [_nested_shape(row) for row in value]
        lengths = [row[0] for row in rows if row]
        if len(lengths) == len(rows) and len(set(lengths)) > 1:
            return f"rows of different lengths: {', '.join(map(str, lengths))}"
        for part in value:
            if _nested_shape(part) is None:
                return _what_is_no_number(part)
        return "an empty list" if not value else "numbers and lists side by side"
    return _what(value)


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "one number, not a list of"


def _near(word: str, valid: Sequence[str]) -> str:
    return next((v for v in valid if v.lower() == word.lower()), nearest(word, list(valid), count=3))


def _hint(key: str, valid: list[str]) -> str:
    """The valid names that end as this one does, however it is written; else those that look like it."""

    def plain(name: str) -> str:
        last = re.sub(r"\.h\d+$", "", name).rsplit(".", 1)[-1].replace("_", "").lower()
        return GREEK.get(last, last)

    alike = [name for name in valid if plain(name) == plain(key)]
    close = [name for name in alike if name.rpartition(".")[0].startswith(key.rpartition(".")[0])] or alike
    return ", ".join(close[:2]) if close else nearest(key, valid, count=2)

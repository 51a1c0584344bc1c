"""What a lesson computes from: a sentence, a vocabulary, sizes and every parameter, all of them yours to change.

Read next: values_file.py, printed.py, random_transformer.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from vidrio.errors import LessonError
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine, build
from vidrio.model.config import DecodingDefaults, ModelConfig
from vidrio.model.find import LESSON, find
from vidrio.model.folder import About, read_config, read_parameters, write_config, write_parameters
from vidrio.model.parameters import ParameterSpec, embedding_tables
from vidrio.text.tokens.special import NONE
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import SpecialNames


@dataclass(frozen=True, kw_only=True)
class Values:
    """Everything that a lesson computes from. One vocabulary of words serves both languages, as in the post."""

    about: str  # where the numbers come from, for people
    sentence: str
    vocabulary: tuple[str, ...]
    config: ModelConfig
    score_divisor: float
    parameters: Mapping[str, Array]
    generation_VD: Array | None = None  # a second table of embeddings, for the generation at the end only

    @cached_property
    def tokenizer(self) -> Tokenizer:
        special = self.config.special
        ids = (special.pad, special.unk, special.start, special.end)
        names = SpecialNames(*(None if i == NONE else self.vocabulary[i] for i in ids))
        words = [word for word in self.vocabulary if word not in names]
        return Tokenizer.of_words(self.vocabulary, names=names, lowercase=all(word == word.lower() for word in words))

    @cached_property
    def source_ids(self) -> list[int]:
        """The ids of the sentence's words, as the encoder gets them."""
        ids = self.tokenizer.encode(self.sentence)
        if not ids:
            raise LessonError("the sentence has no words", found=repr(self.sentence), do="give one or more words")
        return [*ids, *self.config.source_close]

    def machine(self) -> Machine:
        return replace(build(self.config, self.parameters), score_divisor=self.score_divisor)

    def machine_for_generation(self) -> Machine:
        """The same machine, with the second table of embeddings if there is one."""
        if self.generation_VD is None:
            return self.machine()
        tables = dict.fromkeys(embedding_tables(self.config), self.generation_VD)
        return replace(self, parameters={**self.parameters, **tables}).machine()

    def write_model(self, folder: Path) -> None:
        """These values as a model folder, for `vidrio look`, `why` and `check --model FOLDER`.

        A folder has no place for another divisor than √K, nor for a second table of embeddings.
        """
        config = replace(self.config, decoding=DecodingDefaults(beam=1, max_length=min(12, self.config.max_positions)))
        write_parameters(folder, self.parameters)
        self.tokenizer.save(folder / "tokenizer.json")
        write_config(folder, config, About(name="lesson values", provenance={"about": self.about}))


def draw(specs: Mapping[str, ParameterSpec], generator: np.random.Generator, spread: float = 1.0) -> dict[str, Array]:
    """Every parameter from N(0, spread²), in the order of the specs, as the post draws them; layer norms: γ 1, β 0."""
    fixed = {"gain": np.ones, "bias": np.zeros}
    return {
        name: fixed[last](spec.shape)
        if (last := name.rsplit(".", 1)[-1]) in fixed
        else spread * generator.standard_normal(spec.shape)
        for name, spec in specs.items()
    }


def of_a_model(folder: Path) -> Values:
    """The values of a small trained encoder–decoder with one vocabulary of words."""
    config, about = read_config(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer.json", config.special)
    two = (folder / "target-tokenizer.json").exists()
    if config.shape != "encoder-decoder" or two or tokenizer.kind != "word":
        raise LessonError(
            f"the lesson cannot walk through {folder}",
            found=f"shape {config.shape}, {tokenizer.kind} tokens, {'two vocabularies' if two else 'one vocabulary'}",
            do="use an encoder-decoder with one vocabulary of words; `vidrio look --model` takes any model",
        )
    return Values(
        about=f"They were learned: the model {about.name or folder.name}.",
        sentence="hello world",
        vocabulary=tuple(tokenizer.vocabulary()),
        config=replace(config, decoding=DecodingDefaults()),  # the walk has its own way to choose words
        score_divisor=math.sqrt(config.d_head),
        parameters={name: np.asarray(array, dtype=np.float64) for name, array in read_parameters(folder).items()},
    )


def trained() -> Values:
    """The same sizes, trained: the lessons' model that comes with the package."""
    return of_a_model(find(LESSON))

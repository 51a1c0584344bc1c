"""The reference as an engine: `glass/` searches for one translation after the other."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.transformer import Machine, build, translate_forced
from vidrio.hypothesis import Hypothesis, Ids, Noted, Options, Pair
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_parameters
from vidrio.search import search


class Glass:
    """The reference as an engine: one sentence after the other."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @staticmethod
    def load(folder: Path, config: ModelConfig) -> "Glass":
        return Glass(build(config, read_parameters(folder), np.float32))

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: Options,
        stopped: Callable[[], bool] = lambda: False,
        note: Noted | None = None,
    ) -> list[list[Hypothesis]]:
        special, results = self._machine.config.special, []
        for ids in sources:
            if stopped():
                raise CancelledError
            results.append(search(stepper(self._machine, ids), special.start, special.end, options))
        return results

    def watch(self, source: Ids, options: Options, tell: Callable[[int], bool]) -> Hypothesis:
        special, step = self._machine.config.special, stepper(self._machine, source)

        def told(prefixes: Sequence[Ids]) -> np.ndarray:
            if len(prefixes[0]) > 1 and tell(prefixes[0][-1]):
                raise CancelledError
            return step(prefixes)

        return search(told, special.start, special.end, replace(options, beam=1, n_best=1))[0]

    def score(self, pairs: Sequence[Pair]) -> list[list[float]]:
        special = self._machine.config.special
        scores = []
        for source, target in pairs:
            prob_TV = translate_forced(self._machine, source, [special.start, *target])
            chosen_T = prob_TV[np.arange(len(target) + 1), [*target, special.end]]
            with np.errstate(divide="ignore"):
                scores.append([float(log_prob) for log_prob in np.log(chosen_T)])
        return scores

    def attend(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        return [self._attended(*pair) for pair in pairs]

    def _attended(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        config, heads = self._machine.config, list[np.ndarray]()
        layer = f"dec.{config.n_decoder_layers - 1}.cross.weights."

        def tap(name: str, value: np.ndarray) -> np.ndarray:
            if name.startswith(layer):
                heads.append(value)
            return value

        if target:
            translate_forced(self._machine, source, [config.special.start, *target[:-1]], tap)
        return np.mean(heads, axis=0) if heads else np.zeros((0, len(source)))

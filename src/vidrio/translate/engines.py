"""Which engine translates: CTranslate2 on the exported files, or `glass/` itself. Both take ids and give hypotheses."""

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np

from vidrio.errors import ModelError
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.transformer import Machine, build, translate_forced
from vidrio.model.config import ModelConfig
from vidrio.model.find import PACKAGE
from vidrio.search import Hypothesis, Options, search

ENGINES = ("auto", "fast", "glass")
TINY = 1_000_000  # bytes of parameters; below, glass/ answers before CTranslate2's files could be made

Pair = tuple[Sequence[int], Sequence[int]]  # source ids, and target ids without start and end


class Engine(Protocol):
    """Source ids have their end token, if the model wants one."""

    def search(
        self, sources: Sequence[Sequence[int]], options: Options, stopped: Callable[[], bool] = lambda: False
    ) -> list[list[Hypothesis]]:
        """For each source the best hypotheses, best first; CancelledError when `stopped` says that nobody wants them
        any more."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """For each pair the log-probability of every target token and of the end token after them."""
        ...

    def attend(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        """For each pair what the decoder looked at when it chose each target token, T × S: the last layer's
        cross-attention, the mean over its heads."""
        ...


class Glass:
    """The reference as an engine: one sentence after the other."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def search(
        self, sources: Sequence[Sequence[int]], options: Options, stopped: Callable[[], bool] = lambda: False
    ) -> list[list[Hypothesis]]:
        special, found = self._machine.config.special, []
        for ids in sources:
            if stopped():
                raise CancelledError
            found.append(search(stepper(self._machine, ids), special.start, special.end, options))
        return found

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
        config = self._machine.config
        layer = f"dec.{config.n_decoder_layers - 1}.cross.weights."
        found = []
        for source, target in pairs:
            heads: list[np.ndarray] = []

            def tap(name: str, value: np.ndarray, heads: list[np.ndarray] = heads) -> np.ndarray:
                if name.startswith(layer):
                    heads.append(value)
                return value

            if target:
                translate_forced(self._machine, source, [config.special.start, *target[:-1]], tap)
            found.append(np.mean(heads, axis=0) if heads else np.zeros((0, len(source))))
        return found


def open_engine(
    folder: Path,
    config: ModelConfig,
    wish: str = "auto",
    *,
    workers: int = 1,
    tell: Callable[[str], None] | None = None,
) -> Engine:
    """The engine for a model. `auto` is fast wherever it can be; `tell` hears when its files are made, at first use."""
    if wish not in ENGINES:
        raise ModelError(f"there is no engine {wish!r}", do=f"choose one of {', '.join(ENGINES)}")
    if config.shape != "encoder-decoder":
        raise ModelError(
            f"{folder} does not translate",
            found=f"its shape is {config.shape!r}",
            do="use vidrio look, or another model",
        )
    if wish == "glass" or (wish == "auto" and is_tiny(folder)):
        from vidrio.model.folder import read_parameters

        return Glass(build(config, read_parameters(folder), np.float32))
    return _fast(folder, config, workers, tell or (lambda message: None))


def is_tiny(folder: Path) -> bool:
    """Whether translating takes `glass/`, unless told otherwise."""
    weights = folder / "model.safetensors"
    return weights.is_file() and weights.stat().st_size < TINY and not (folder / "fast").is_dir()


def multiplies_in(folder: Path, config: ModelConfig) -> str:
    """What translating with this model multiplies in, unless told otherwise: int8 or float32."""
    from vidrio.fast.files import is_current, read_manifest

    if config.shape != "encoder-decoder" or is_tiny(folder):
        return "float32"
    exported = (place for place in (folder / "fast", cache_place(folder)) if is_current(folder, place))
    return next((read_manifest(place).quantisation for place in exported), "int8")


def _fast(folder: Path, config: ModelConfig, workers: int, tell: Callable[[str], None]) -> Engine:
    from vidrio.fast.engine import Engine as Fast
    from vidrio.fast.files import check_whole, is_current

    places = [folder / "fast", cache_place(folder)]
    for place in places:
        if is_current(folder, place):
            check_whole(place)
            return Fast(place, config, workers=workers)
    from vidrio.fast.export import export

    tell(f"preparing {folder.name} for the fast engine; this is done once")
    for place in places[1:] if PACKAGE in folder.resolve().parents else places:  # the package stays as it is
        try:
            export(folder, place)
            return Fast(place, config, workers=workers)
        except OSError:
            continue  # a folder that cannot be written to
    with tempfile.TemporaryDirectory(prefix="vidrio-") as temporary:
        export(folder, Path(temporary) / "fast")
        return Fast(Path(temporary) / "fast", config, workers=workers)  # it is in memory now


def cache_place(folder: Path) -> Path:
    """Where the exported files of a model lie whose own folder is not ours to write to."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "vidrio" / "fast" / sha256(str(folder.resolve()).encode()).hexdigest()[:16]

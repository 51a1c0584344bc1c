"""Which engine translates: CTranslate2 on the exported files, or `glass/` itself. Both take ids and give hypotheses.
Only the one that is used is imported."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from vidrio.errors import ModelError
from vidrio.hypothesis import Hypothesis, Ids, Noted, Options, Pair
from vidrio.model.config import ModelConfig
from vidrio.model.find import PACKAGE, find
from vidrio.model.folder import About, read_config

if TYPE_CHECKING:
    import numpy as np

ENGINES = ("auto", "fast", "glass")
TINY = 1_000_000  # bytes of parameters; below, glass/ answers before CTranslate2's files could be made


class NoTranslator(ModelError):
    """The model is a classifier, or one that writes on (answers.py)."""


class Engine(Protocol):
    """Source ids have their end token, if the model wants one."""

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: Options,
        stopped: Callable[[], bool] = lambda: False,
        note: Noted | None = None,
    ) -> list[list[Hypothesis]]:
        """For each source the best hypotheses, best first; CancelledError when `stopped` says that nobody wants them
        any more. What an engine does not `note` can be asked by `attend`, and so can the first token's row."""
        ...

    def watch(self, source: Ids, options: Options, tell: Callable[[int], bool]) -> Hypothesis:
        """The greedy translation of one source; `tell` hears every token as it is chosen, and says whether to stop."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """For each pair the log-probability of every target token and of the end token after them."""
        ...

    def attend(self, pairs: Sequence[Pair]) -> "list[np.ndarray]":
        """For each pair what the decoder looked at when it chose each target token, T × S: the last layer's
        cross-attention, the mean over its heads."""
        ...


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
        raise NoTranslator(
            f"{folder} does not translate",
            found=f"its shape is {config.shape!r}",
            do="use vidrio translate or vidrio look, which know such models; or another model",
        )
    if not _is_fast(folder, config, wish):
        from vidrio.translate.glass_engine import Glass

        return Glass.load(folder, config)
    return _ready(folder, config, wish, workers) or _made(folder, config, workers, tell or (lambda message: None))


class Opening(NamedTuple):
    """A model whose engine is being loaded in another thread, so that there is time to import and read the rest."""

    folder: Path
    config: ModelConfig
    about: About
    wish: str
    workers: int
    ready: "Future[Engine | None]"  # none: another is wished for, or its files have to be made first


def begin(name: str | Path | None = None, wish: str = "auto", workers: int = 1) -> Opening:
    """Begin to open a model, by name or folder."""
    folder = find(name)
    config, about = read_config(folder)
    pool = ThreadPoolExecutor(1)
    ready = pool.submit(_ready, folder, config, wish, workers)
    pool.shutdown(wait=False)
    if _is_fast(folder, config, wish):
        import_module("vidrio.fast.engine")  # what that thread will wait for, while it looks at the files
    return Opening(folder, config, about, wish, workers, ready)


def _is_fast(folder: Path, config: ModelConfig, wish: str) -> bool:
    return config.shape == "encoder-decoder" and (wish == "fast" or (wish == "auto" and not is_tiny(folder)))


def _ready(folder: Path, config: ModelConfig, wish: str, workers: int) -> Engine | None:
    """The fast engine, if it is the one that is wished for and its files are there: loaded, and warm."""
    from vidrio.fast.files import check_whole

    if not _is_fast(folder, config, wish) or (place := exported(folder)) is None:
        return None
    check_whole(place)
    from vidrio.fast.engine import Engine as Fast

    engine = Fast(place, config, workers=workers)
    engine.warm()
    return engine


def exported(folder: Path) -> Path | None:
    """Where the fast engine's files of this model lie, if they are made."""
    from vidrio.fast.files import is_current

    return next((place for place in (folder / "fast", cache_place(folder)) if is_current(folder, place)), None)


def is_tiny(folder: Path) -> bool:
    """Whether translating takes `glass/`, unless told otherwise."""
    weights = folder / "model.safetensors"
    return weights.is_file() and weights.stat().st_size < TINY and not (folder / "fast").is_dir()


def multiplies_in(folder: Path, config: ModelConfig) -> str:
    """What translating with this model multiplies in, unless told otherwise: int8 or float32."""
    from vidrio.fast.files import read_manifest

    if config.shape != "encoder-decoder" or is_tiny(folder):
        return "float32"
    place = exported(folder)
    return read_manifest(place).quantisation if place else "int8"


def _made(folder: Path, config: ModelConfig, workers: int, tell: Callable[[str], None]) -> Engine:
    """The fast engine on files that are made now."""
    import tempfile

    from vidrio.fast.engine import Engine as Fast
    from vidrio.fast.export import export
    from vidrio.fast.files import promised

    if not promised(folder):
        tell(f"preparing {folder.name} for the fast engine; this is done once")
    places = [folder / "fast", cache_place(folder)]
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


def cores() -> int:
    """How many batches are worked on at the same time, unless told otherwise."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

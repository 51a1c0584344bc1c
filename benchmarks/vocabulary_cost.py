"""What a vocabulary shortlist could save: the same model with ever fewer rows in its vocabulary.

    python benchmarks/vocabulary_cost.py [--model MODEL]

Random sources of 20 tokens, 20 tokens out, one thread, CPU time, medians of five rounds in which the sizes take turns.
What a translation says means nothing here: it is as long with any vocabulary.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from vidrio.fast.engine import Engine
from vidrio.fast.export import write

from vidrio.hypothesis import Options
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config, read_parameters

ROUNDS, TOKENS, FEWEST = 5, 20, 500
BATCHES = ((1, 1), (64, 1), (1, 4), (64, 4))  # sentences in a batch, beam


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model folder or name")
    folder = models.find(parser.parse_args().model)
    config, _ = read_config(folder)
    parameters = read_parameters(folder)
    size = min(config.source_vocabulary, config.target_vocabulary)
    sizes = [rows for rows in (size, size // 2, size // 4, size // 8) if rows >= FEWEST]
    with tempfile.TemporaryDirectory() as home:
        engines = {rows: cut(config, parameters, rows, Path(home) / str(rows)) for rows in sizes}
        for sentences, beam in BATCHES:
            taken: dict[int, list[float]] = {rows: [] for rows in sizes}
            for _ in range(ROUNDS + 1):
                for rows, engine in engines.items():
                    taken[rows].append(milliseconds(engine, config, sentences, beam))
            print(f"{sentences} at a time, beam {beam}")
            for rows, times in taken.items():
                median = statistics.median(times[1:])
                whole = statistics.median(taken[size][1:])
                print(f"  {rows:6,} rows  {median:7.2f} ms a sentence   {median / whole:.2f}", flush=True)


def cut(config: ModelConfig, parameters: Mapping[str, np.ndarray], rows: int, to: Path) -> Engine:
    """The model with the first so many rows of its vocabulary, for the fast engine."""
    whole = {config.source_vocabulary, config.target_vocabulary}
    fewer = {name: value[:rows] if value.shape[0] in whole else value for name, value in parameters.items()}
    config = replace(config, source_vocabulary=rows, target_vocabulary=rows)
    tokens = [f"token {i}" for i in range(rows)]
    write(to, config, fewer, (tokens, tokens), "int8")
    return Engine(to, config)


def milliseconds(engine: Engine, config: ModelConfig, sentences: int, beam: int) -> float:
    """CPU time of a sentence, in a batch of so many."""
    ids = np.random.default_rng(0).integers(4, FEWEST, size=(sentences, TOKENS)).tolist()
    suppressed = tuple(i for i in (config.special.pad, config.special.start) if i >= 0)
    options = Options(beam=beam, min_length=TOKENS, max_length=TOKENS, suppressed=suppressed, scores=False)
    times = max(1, 32 // (sentences * beam))
    began = time.process_time()
    for _ in range(times):
        engine.search(ids, options)
    return 1000 * (time.process_time() - began) / (times * sentences)


if __name__ == "__main__":
    main()

"""How often `glass/` in eight bits finds the same tokens as the fast engine, and the first sentences where it does not.

    python benchmarks/agreement.py en-es test.en news.en [--beam 1 4] [--from-to 0 10000] [--to results.jsonl]

A line of the files is one source. With a beam of 1 the fast engine's tokens are forced upon `glass/`, which has to find
each of them the likeliest: one pass, and the same as a search. With a beam, `glass/` searches, the hypotheses of a step
in one pass. What stands in the file of results is not computed again, so a run that was stopped goes on.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path

import numpy as np

from vidrio.glass.paper.eight_bits import one_query_at_a_time
from vidrio.glass.paper.maths import Array, no_tap
from vidrio.glass.paper.transformer import Machine, build, decode, decoder_layer, embed, encode, for_beam, logits, norm
from vidrio.hypothesis import Hypothesis, Ids, Options, default_options
from vidrio.model.find import find
from vidrio.model.folder import read_config, read_parameters
from vidrio.search import Step, restrict, search
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.engines import Engine, open_engine

SHOWN = 5  # sentences that differ
LONGEST = 100  # tokens; what is longer is no sentence
BLOCK = 50  # sentences between two lines of results

Differing = tuple[str, str, str]  # the source, what was printed, what `glass/` found


@dataclass(frozen=True)
class Both:
    """One model in both engines."""

    machine: Machine
    fast: Engine
    source: Tokenizer
    target: Tokenizer

    def ids(self, line: str) -> list[int]:
        config = self.machine.config
        return [*self.source.encode(line), *([config.special.end] if config.source_end else [])]


@cache
def opened(name: str, beam: int = 1, dtype: type = np.int8) -> Both:
    folder = find(name)
    config, _ = read_config(folder)
    source, target = read_tokenizers(folder, config)
    machine = for_beam(build(config, read_parameters(folder), dtype), beam)
    return Both(machine, open_engine(folder, config, "fast"), source, target)


# --- many hypotheses in one pass --------------------------------------------------------------------------------------


@dataclass
class KeptByBranch:
    """The keys and values of N hypotheses of one length: N lists of rows of the target, one of the memory."""

    length: int = 0
    rows: dict[str, Array] = field(default_factory=dict)

    def grow(self, name: str, make: Callable[[], Array]) -> Array:
        new_HN1K = make()[:, :, None]
        old = self.rows.get(name)
        self.rows[name] = new_HN1K if old is None else np.concatenate([old, new_HN1K], axis=2)
        return self.rows[name]

    def once(self, name: str, make: Callable[[], Array]) -> Array:
        if name not in self.rows:
            self.rows[name] = make()
        return self.rows[name]

    def follow(self, parents: Sequence[int]) -> None:
        """Hypothesis n now goes on from what was number parents[n]."""
        self.rows = {name: rows[:, parents] if rows.ndim == 4 else rows for name, rows in self.rows.items()}


def each_its_own_keys(Q_HNK: Array, K_HNMK: Array, divisor: float) -> Array:
    """Row n asks its own keys."""
    return one_query_at_a_time(Q_HNK[:, :, None], K_HNMK, divisor)[:, :, 0]


def mix_of_own(weights_HNM: Array, V: Array, shared: Callable[[Array, Array], Array]) -> Array:
    """Row n mixes its own values; rows that share theirs mix as ever."""
    if V.ndim == 3:
        return shared(weights_HNM, V)
    return shared(weights_HNM[:, :, None], V)[:, :, 0]


def stepper_in_one_pass(machine: Machine, source: Sequence[int]) -> Step:
    """`step` as in glass/paper/decoding.py, number by number (tests hold it to that), for all prefixes at once."""
    shared = machine.arithmetic.mix
    arithmetic = replace(
        machine.arithmetic,
        decoder_scores=each_its_own_keys,
        mix=lambda weights, values: mix_of_own(weights, values, shared),
    )
    whole = machine.whole_parameters
    machine = replace(machine, arithmetic=arithmetic, mask=lambda scaled, name, tap: scaled)
    vars(machine)["whole_parameters"] = whole  # not once more for each sentence
    memory_SD, kept, before = encode(machine, source), KeptByBranch(), [()]

    def step(prefixes: Sequence[Ids]) -> Array:
        nonlocal before
        if kept.length:
            kept.follow([before.index(prefix[:-1]) for prefix in prefixes])
        before = list(prefixes)
        x_ND = np.concatenate([embed(machine, "tgt", prefix[-1:], kept.length, no_tap) for prefix in prefixes])
        for n in range(machine.config.n_decoder_layers):
            x_ND = decoder_layer(machine, x_ND, memory_SD, f"dec.{n}", kept=kept)
        kept.length += 1
        if machine.config.norm == "pre":
            x_ND = norm(machine, x_ND, "dec.norm", no_tap)
        return logits(machine, x_ND)

    return step


# --- the comparison ---------------------------------------------------------------------------------------------------


def glass_tokens(machine: Machine, source: Sequence[int], options: Options, printed: Hypothesis) -> tuple[int, ...]:
    """What `glass/` finds; with a beam of 1 up to the first token that is another one than was printed."""
    special = machine.config.special
    if options.beam > 1:
        return search(stepper_in_one_pass(machine, source), special.start, special.end, options)[0].ids
    wanted = (*printed.ids, *([special.end] if printed.ended else []))
    rows_TV = logits(machine, decode(machine, [special.start, *wanted[:-1]], encode(machine, source)))
    for step, row_V in enumerate(rows_TV):
        token = int(np.argmax(restrict(row_V, wanted[:step], special.end, options)))
        if token != wanted[step]:
            return (*wanted[:step], token)
    return printed.ids


def differing(name: str, beam: int, lines: Sequence[str], dtype: type = np.int8) -> Iterator[Differing]:
    """The lines where the two part."""
    both = opened(name, beam, dtype)
    options = replace(default_options(both.machine.config), beam=beam)
    sources = [both.ids(line) for line in lines]
    for line, source, [printed, *_] in zip(lines, sources, both.fast.search(sources, options), strict=True):
        found = glass_tokens(both.machine, source, options, printed)
        if found != printed.ids:
            yield line, both.target.decode(printed.ids), both.target.decode(found)


def sentences(paths: Sequence[Path], name: str, first: int, last: int) -> list[str]:
    both = opened(name)
    lines = chain.from_iterable(path.read_text(encoding="utf-8").splitlines() for path in paths)
    texts = (line.partition("\t")[0].strip() for line in lines)
    return list(islice((text for text in texts if text and len(both.ids(text)) <= LONGEST), first, last))


def wilson(successes: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    share, spread = successes / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / count + spread / (4 * count))
    return middle - half, middle + half


def summary(records: Sequence[dict[str, object]], name: str, beam: int) -> str:
    differ: list[Differing] = [tuple(row) for record in records for row in record["differ"]]  # type: ignore[attr-defined, misc]
    count = sum(record["to"] - record["from"] for record in records)  # type: ignore[operator, misc]
    low, high = wilson(count - len(differ), count)
    head = f"{name}, beam {beam}: the same tokens in {count - len(differ):,} of {count:,} sentences"
    text = [f"{head} = {100 * (1 - len(differ) / count):.2f} %, interval {100 * low:.2f} to {100 * high:.2f} %"]
    for line, printed, found in differ[:SHOWN]:
        text += [f"  {line}", f"    fast:  {printed}", f"    glass: {found}"]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--from-to", type=int, nargs=2, default=[0, 10_000], metavar=("FIRST", "LAST"))
    parser.add_argument("--to", type=Path, help="file of results: what it holds is not computed again")
    parser.add_argument("--float", action="store_true", help="glass/ in float32 instead, for comparison")
    given = parser.parse_args()
    dtype = np.float32 if given.float else np.int8
    lines = sentences(given.files, given.model, *given.from_to)
    known = given.to.read_text(encoding="utf-8").splitlines() if given.to and given.to.exists() else []
    records = [json.loads(line) for line in known]
    for beam in given.beam:
        same = {"model": given.model, "beam": beam, "dtype": dtype.__name__}
        mine = list({record["from"]: record for record in records if same.items() <= record.items()}.values())
        done = {record["from"] for record in mine}
        for start in range(0, len(lines), BLOCK):
            first, block = given.from_to[0] + start, lines[start : start + BLOCK]
            if first in done:
                continue
            record = {**same, "from": first, "to": first + len(block)}
            record["differ"] = list(differing(given.model, beam, block, dtype))
            mine.append(record)
            if given.to:
                with given.to.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
        print(summary(mine, given.model, beam), flush=True)


if __name__ == "__main__":
    main()

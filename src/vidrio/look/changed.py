"""Compares runs before and after a what-if: the translations and the numbers.

`glass/whatif.py` defines changes to the machine and its numbers. Three more changes affect the search:

    ("prefix", "Ayer he")                  the translation begins with these words
    ("pin", "▁Ayer ▁compr é")              the translation begins with these tokens, or consists of them if the
                                           last one is the end token
    ("draw", "temperature=1.2 top-k=10")   each token is drawn at random
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vidrio.engine.engine import Stopped
from vidrio.errors import ConfigError, nearest
from vidrio.glass.compared import Comparison, compare
from vidrio.glass.whatif import Change, WhatIf, parse
from vidrio.hypothesis import Options, Sampling
from vidrio.look.run import InEngine, LoadedModel, Look, Printed, look
from vidrio.look.writing import PRECISION, cut, note, number, table
from vidrio.search import Tree

WhatIfOption = tuple[str, str]  # ("without", "layer-norm")
_DRAWS = {"temperature": float, "top-k": int, "top-p": float, "seed": int}


@dataclass(frozen=True)
class BeforeAfter:
    """Two runs on the same text, before and after a what-if."""

    before: Look
    after: Look
    whatif: WhatIf

    @staticmethod
    def of_one(run: Look) -> "BeforeAfter":
        """Wrap an unchanged run as both `before` and `after`."""
        return BeforeAfter(run, run, WhatIf())

    @cached_property
    def compared(self) -> Comparison:
        return compare(self.before.trace, self.after.trace, self.whatif)


def look_changed(
    model: LoadedModel,
    text: str,
    wanted: Sequence[WhatIfOption],
    *,
    options: Options | None = None,
    target: Sequence[int] | Printed | None = None,
    tree: Tree | None = None,
) -> BeforeAfter:
    """Run the model on a text, apply the changes, and run it again. `tree` records the second search.

    If there are no changes, the model runs once, and `before` and `after` are the same run.
    """
    before = look(model, text, options=options, target=target, tree=None if wanted else tree)
    if not wanted or before.empty:
        return BeforeAfter.of_one(before)
    forced = None if isinstance(target, Printed) else target  # a changed machine finds its own translation
    return with_changes(before, model, wanted, forced, tree)


def with_changes(
    before: Look,
    model: LoadedModel,
    wanted: Sequence[WhatIfOption],
    target: Sequence[int] | None = None,
    tree: Tree | None = None,
    stopped: Stopped = None,
) -> BeforeAfter:
    """Run the changed model on the same text.

    A changed model may never produce the end token, so its translation is cut off if it repeats itself, or at about
    three times the length of the text.
    """
    about_search = [change for change in wanted if change[0] in ("prefix", "pin", "draw")]
    options, pinned, of_search = _searching(about_search, model, before.options)
    whatif = parse([change for change in wanted if change not in about_search], before.trace)
    machine = whatif.apply(model.machine)
    engine, interventions = before.model.in_engine, whatif.interventions
    in_engine = None if engine is None or interventions is None else InEngine(engine.engine, interventions)
    changed = replace(model, machine=machine, config=machine.config, may_ramble=True, in_engine=in_engine)
    tree = None if in_engine and machine.whole else tree  # only the NumPy search can record a tree
    with np.errstate(all="ignore"):  # NaN and infinities are expected
        after = look(changed, before.text, options=options, target=pinned or target, tree=tree, stopped=stopped)
    return BeforeAfter(before, after, WhatIf((*of_search, *whatif.changes)))


def _searching(
    wanted: Sequence[WhatIfOption], model: LoadedModel, options: Options
) -> tuple[Options, tuple[int, ...] | None, list[Change]]:
    """Apply the changes that affect the search. Returns the search options, the complete translation if one was given,
    and the changes with their descriptions."""
    target, changes = None, []
    for option, words in wanted:
        if model.config.shape != "encoder-decoder":
            raise ConfigError(f"--{option}: this model does not translate", do="type another text instead")
        if option == "draw":
            options = replace(options, beam=1, n_best=1, sampling=_sampling(words))
            says = "each token is sampled at random"
        else:
            encode = model.target_tokenizer.encode
            ids = tuple(encode(words) if option == "prefix" else _ids(words, model.target_vocabulary))
            target = ids if ids[-1:] == (model.config.special.end,) else target
            options = replace(options, prefix=ids[: options.max_length - 1])
            says = "the translation begins with these words" if option == "prefix" else "this hypothesis is chosen"
        changes.append(Change(says, option=f"--{option} {words}"))
    return options, target, changes


def _ids(words: str, vocabulary: Sequence[str]) -> list[int]:
    places = {token: i for i, token in enumerate(vocabulary)}
    for token in words.split():
        if token not in places:
            near = nearest(token, list(vocabulary))
            raise ConfigError(f"there is no token {token!r} to start from", found=f"closest matches: {near}")
    return [places[token] for token in words.split()]


def _sampling(words: str) -> Sampling:
    given: dict[str, Any] = {}
    for word in words.split():
        name, _, value = word.partition("=")
        try:
            given[name.replace("-", "_")] = _DRAWS[name](value)
        except (KeyError, ValueError):
            found = f"name=value, where the name is one of {', '.join(_DRAWS)}"
            raise ConfigError(f"--draw: {word!r} cannot be parsed", found=found) from None
    return Sampling(**given)


def view(tried: BeforeAfter, precision: int = PRECISION) -> Iterator[str]:
    """Format the two translations, the first NaN and infinity, the largest change in each layer, and the change in the
    next-token probabilities at each step."""
    if tried.before.empty:
        yield "The text is empty: nothing was computed, so nothing can change."
        return
    compared = tried.compared
    yield "What if"
    for change in tried.whatif.changes:
        yield note(f"{change.option}: {change.says}", indent=2, hang=4)
    for warning in compared.notes:
        yield note(f"! {warning}", indent=2, hang=4)
    for word, seen in (("before", tried.before), ("after", tried.after)):
        text = seen.translation or "(nothing)"
        if seen.stopped:
            text += " … then no word could be chosen: the numbers were NaN or infinite"
        elif seen.model.may_ramble and seen.result and not (seen.result.ended or seen.forced):
            text += " … (cut)"
        yield note(f"{word:6}  {text}", indent=2, hang=10)
    for what, address in (("first NaN", compared.first_nan), ("first infinity", compared.first_infinite)):
        if address is not None:
            yield f"  {what}: {address}"
    yield ""
    rows = []
    for layer, changed in compared.layers.items():
        if changed.largest != 0:
            by = "became NaN" if np.isnan(changed.largest) else number(changed.largest, precision)
            before, after = (number(value, precision) for value in (changed.before, changed.after))
            rows.append([layer, by, cut(changed.address, 32), f"{before} → {after}"])
    if not rows:
        yield "Nothing changed: every number is the same."
    else:
        yield note(f"The largest change in each layer{_over(tried)}")
        yield table(rows, ["layer", "by", "at", "before → after"], "l.", indent=2)
    if compared.kl:
        shown = ", ".join(number(kl, precision) for kl in compared.kl[:8]) + ", …" * (len(compared.kl) > 8)
        yield ""
        what = "next word's probabilities moved, step by step" if compared.shared_steps else "probabilities moved"
        yield note(f"How far the {what} (KL, in nats): {shown}", hang=2)


def _over(tried: BeforeAfter) -> str:
    """Describe which decoding steps are compared: those whose input tokens are the same in both runs."""
    steps, before, after = tried.compared.shared_steps, tried.before.chosen_ids, tried.after.chosen_ids
    if steps == 0 or before == after:
        return ""
    first = f"the first {'step' if steps == 1 else f'{steps} steps'} of {len(before)}"
    return f", over {first}: the later ones read different words"


def as_data(tried: BeforeAfter) -> dict[str, Any]:
    """Return the comparison as JSON data."""
    compared = asdict(tried.compared)
    layers = [{"layer": layer, **changed} for layer, changed in compared.pop("layers").items()]
    return {
        "changes": [{"option": change.option, "says": change.says} for change in tried.whatif.changes],
        "before": tried.before.translation,
        "after": tried.after.translation,
        "stopped": tried.after.stopped,
        **compared,
        "layers": layers,
    }

"""What `vidrio look` shows of training: one step on a pair, and the ages of a model. The options, and what they do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import names_of, together

if TYPE_CHECKING:
    from vidrio.commands.run_request import RunRequest
    from vidrio.look.run import LoadedModel

_OPTIONS = (
    click.option("--training", is_flag=True, help="How TEXT and --target teach: loss, smoothing, gradient."),
    click.option("--gradient", "gradients", metavar="ADDRESS", multiple=True, help="A parameter's gradient, checked."),
    click.option("--life", "lives", metavar="ADDRESS", multiple=True, help="A parameter in the next training step."),
    click.option(
        "--smoothing", type=click.FloatRange(0, 1, max_open=True), help="Label smoothing. [the run's, or 0.1]"
    ),
    click.option("--history", is_flag=True, help="The same text at every age of the model, from random to trained."),
)
training_options = together(*_OPTIONS)


@dataclass(frozen=True)
class TrainingViews:
    """Which views of training, and of what."""

    training: bool
    gradients: tuple[str, ...]
    lives: tuple[str, ...]
    smoothing: float | None
    history: bool
    attention: str  # that --history tells
    as_json: bool

    @staticmethod
    def take(given: dict[str, Any], *, changed: bool) -> "TrainingViews | None":
        """The views of training among a command's arguments, which lose their options; None if there are none.

        They are views of their own: what else was asked for must be nothing, or fit.
        """
        own = {name: given.pop(name) for name in names_of(*_OPTIONS)}
        step, history = bool(own["training"] or own["gradients"] or own["lives"]), own["history"]
        if own["smoothing"] is not None and not step:
            raise click.UsageError("--smoothing goes with --training, --gradient or --life")
        if not (step or history):
            return None
        fitting = {"as_json", "addresses"} if history else {"as_json"}
        others = [name for name, value in given.items() if value not in (None, False, ()) and name not in fitting]
        if changed or others or (step and history):
            view = "--history" if history else "--training, --gradient and --life"
            raise click.UsageError(f"{view}: not together with what-ifs or other views")
        if history and len(given["addresses"]) > 1:
            raise click.UsageError("--history tells one attention: give --at once")
        return TrainingViews(**own, attention="".join(given["addresses"]), as_json=given["as_json"])


def show_training(asked: TrainingViews, request: "RunRequest", model: "LoadedModel", precision: int) -> None:
    drawn = _history(asked, request, model, precision) if asked.history else _step(asked, request, model, precision)
    click.echo(drawn, nl=False)


def _history(asked: TrainingViews, request: "RunRequest", model: "LoadedModel", precision: int) -> str:
    from vidrio.draw.terminal import text as plain
    from vidrio.look import history as ages
    from vidrio.look.run import target_ids
    from vidrio.model.json_text import json_text

    forced = None
    if request.target is not None and model.config.has_decoder:
        forced = target_ids(model, request.target)
    told = ages.history(model, request.read(model).text, request.options(model), asked.attention, forced)
    return f"{json_text(told.to_json(), indent=1) if asked.as_json else plain(ages.tell(told, precision), precision)}\n"


def _step(asked: TrainingViews, request: "RunRequest", model: "LoadedModel", precision: int) -> str:
    from vidrio.draw.terminal import text as plain
    from vidrio.learn.next_step import first_step, next_step
    from vidrio.look.training import overview, run, to_json
    from vidrio.look.training_numbers import gradient, life

    smoothing = asked.smoothing
    rules = next_step(model.path, model.config, smoothing) if asked.lives else first_step(model.path, smoothing)
    text = request.text if request.target is not None else request.read(model).text
    seen, looked = run(model, text, request.target, rules)
    if asked.as_json:
        return to_json(seen, looked, rules, asked.gradients, asked.lives)
    views = [overview(seen, looked, request.command_line(), precision)] if asked.training else []
    views += [gradient(seen, looked, where, precision) for where in asked.gradients]
    views += [life(seen, looked, rules, where, precision) for where in asked.lives]
    return "\n\n".join(plain(view, precision) for view in views) + "\n"

"""What `vidrio look` shows of training: one step on a pair, and the ages of a model. The options, and what they do."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from vidrio.look import Opened
    from vidrio.report.again import Again
    from vidrio.search import Options

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--training", is_flag=True, help="How TEXT and --target teach: loss, smoothing, gradient."),
    click.option("--gradient", "gradients", metavar="ADDRESS", multiple=True, help="A parameter's gradient, checked."),
    click.option("--life", "lives", metavar="ADDRESS", multiple=True, help="A parameter in the next training step."),
    click.option(
        "--smoothing", type=click.FloatRange(0, 1, max_open=True), help="Label smoothing. [the run's, or 0.1]"
    ),
    click.option("--history", is_flag=True, help="The same text at every age of the model, from random to trained."),
)
NAMES = ("training", "gradients", "lives", "smoothing", "history")


def training_options(command: F) -> F:
    """`--training`, `--gradient`, `--life`, `--smoothing`, `--history`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def show_training(
    model: "Opened",
    text: str,
    options: "Options",
    again: "Again",
    precision: int,
    asked: dict[str, Any],
    *,
    changed: bool,
) -> bool:
    """Print the views of training that were asked for, and say whether there were any.

    The options of NAMES are taken out of `asked`; what else was asked for must be nothing, or fit.
    """
    own = {name: asked.pop(name) for name in NAMES}
    if not any(own[name] for name in NAMES if name != "smoothing"):
        if own["smoothing"] is not None:
            raise click.UsageError("--smoothing goes with --training, --gradient or --life")
        return False
    fitting = {"as_json", "target", "addresses"} if own["history"] else {"as_json", "target"}
    others = [name for name, value in asked.items() if value not in (None, False, ()) and name not in fitting]
    if changed or others or (own["history"] and (own["training"] or own["gradients"] or own["lives"])):
        view = "--history" if own["history"] else "--training, --gradient and --life"
        raise click.UsageError(f"{view}: views of their own, not together with what-ifs or other views")
    if own["history"]:
        click.echo(_history(model, text, options, precision, asked), nl=False)
    else:
        click.echo(_step(model, text, again, precision, asked, **own), nl=False)
    return True


def _history(model: "Opened", text: str, options: "Options", precision: int, asked: dict[str, Any]) -> str:
    import json

    from vidrio.report import training_history as ages

    if len(asked["addresses"]) > 1:
        raise click.UsageError("--history tells one attention: give --at once")
    target = None
    if asked["target"] is not None and model.config.has_decoder:
        target = [*model.target_tokenizer.encode(asked["target"]), model.config.special.end]
    told = ages.history(model, text, options, "".join(asked["addresses"]), target)
    if asked["as_json"]:
        return json.dumps(told.to_json(), ensure_ascii=False, indent=1) + "\n"
    return ages.as_text(told, precision) + "\n"


def _step(
    model: "Opened",
    text: str,
    again: "Again",
    precision: int,
    asked: dict[str, Any],
    *,
    training: bool,
    gradients: tuple[str, ...],
    lives: tuple[str, ...],
    smoothing: float | None,
    history: bool,
) -> str:
    from vidrio.learn.rules import first_step, next_step
    from vidrio.report.training_json import to_json
    from vidrio.report.training_numbers import gradient, life
    from vidrio.report.training_seen import overview, run

    rules = next_step(model.path, model.config, smoothing) if lives else first_step(model.path, smoothing)
    seen, looked = run(model, text, asked["target"], rules)
    if asked["as_json"]:
        return to_json(seen, looked, rules, gradients, lives)
    views = [overview(seen, looked, again, precision)] if training else []
    views += [gradient(seen, looked, where, precision) for where in gradients]
    views += [life(seen, looked, rules, where, precision) for where in lives]
    return "\n\n".join(views) + "\n"

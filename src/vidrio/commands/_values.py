"""What is typed as one word and means more: durations, two names."""

import re

import click


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """`90s`, `30m`, `1h30m` → seconds."""
    if value is None:
        return None
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", value.strip().lower())
    seconds = (
        sum(float(part or 0) * size for part, size in zip(found.groups(), (3600, 60, 1), strict=True)) if found else 0
    )
    if not seconds:
        raise click.BadParameter(f"{value!r} is no time; write 30m, 90s or 1h30m")
    return seconds


def two_names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if len(parts) != 2 or not all(parts):
        raise click.BadParameter(f"{value!r}: give two names with a comma between them")
    return parts[0], parts[1]

"""Arguments and options that several commands share, and how their values are read."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from league.errors import LeagueError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="KEY=VALUE", help="Set a dotted configuration key; may be repeated."),
]
For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="Stop after so long, as 90, 180s, 3m or 2h.")]
EnvSteps = Annotated[int | None, typer.Option("--env-steps", min=1, help="Stop after so many more env steps.")]
CoreSeconds = Annotated[
    float | None, typer.Option("--core-seconds", min=0.0, help="Stop after so many more processor seconds.")
]
NoEval = Annotated[
    bool,
    typer.Option(
        "--no-eval",
        help="No games against bots at the end of the budget (else a fifth of the time, at most 60 s); after a stop "
        "there are none in any case.",
    ),
]
At = Annotated[
    str, typer.Option("--at", metavar="EVENT", help="Event number, snapshot:NAME, or latest.", show_default=False)
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="bradley-terry (pairs of teams), openskill (teams of several seats, more than two teams) or meta-game "
        "(Nash averaging, alpha-rank and cycles, where strength is not one number).",
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Load code that a folder names although you did not train it: it runs as you.")
]
Replays = Annotated[Path | None, typer.Option("--replays", metavar="DIR", help="Record the games here.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the journal.")]
SearchOption = Annotated[
    int, typer.Option("--search", metavar="N", min=0, help="Networks search so many simulations before each move.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def with_trust(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the option --trust: the user says so of what these arguments name.

    Args:
      names: of arguments that are a path, a contender as it is written, or several of those.
    """

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def trusting(*given: object, trust: bool = False, **named: object) -> None:
            if trust:
                from league.policies.trust import trust_places

                values = signature.bind(*given, **named).arguments
                trust_places(place for name in names for place in _places_in(values.get(name)))
            command(*given, **named)

        option = inspect.Parameter("trust", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Trust)
        parameters = [*signature.parameters.values(), option]
        changed: Any = trusting
        changed.__signature__ = signature.replace(parameters=parameters)
        changed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return trusting

    return wrap


def _places_in(value: object) -> Iterator[str | Path]:
    """The places that the value of an argument names."""
    from league.config.contender_names import split_source

    if isinstance(value, Path):
        yield value
    elif isinstance(value, str) and value:
        for text in (value, *names_in(value)):
            yield from (text, split_source(text)[0])
    elif isinstance(value, list):
        for item in value:
            yield from _places_in(item)


def limits_of(for_time: str | None, env_steps: int | None, core_seconds: float | None):  # type: ignore[no-untyped-def]
    from league.run.budget import Limits

    seconds = None if for_time is None else seconds_of(for_time)
    for option, limit in (("--for", seconds), ("--core-seconds", core_seconds)):
        if limit is not None and limit <= 0:
            raise LeagueError(f"{option} 0 leaves no time to train: give more, or leave it out for the whole budget.")
    return Limits(seconds=seconds, core_seconds=core_seconds, env_steps=env_steps)


def seconds_of(text: str) -> float:
    """A time such as 90, 180s, 3m, 2h or 1d in seconds.

    Raises:
      LeagueError: it is none.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text.strip())
    if found is None:
        raise LeagueError(f"{text!r} is not a time: write 90, 180s, 3m, 2h or 1d.")
    return float(found[1]) * _UNITS[found[2]]


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list, each once; spaces round them and empty ones do not count."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


@contextlib.contextmanager
def games_line(unit: str = "games", *, limit_s: float | None = None) -> Iterator[Callable[[int, int], None]]:
    """Shows how many games of a match, or of another unit, have ended. limit_s: when they end in any case."""
    from league.progress import ProgressLine

    with ProgressLine(sys.stderr, limit_s=limit_s) as line:
        yield lambda done, total: line.show(f"{done:,} of {total:,} {unit}", fraction=done / max(total, 1))

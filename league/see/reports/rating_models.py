"""The registry of rating models, selected by `league ratings --model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, cast

from league.envs.plugins import PluginError, resolve
from league.errors import LeagueError

BRADLEY_TERRY = "bradley-terry"

RATING_MODELS: Mapping[str, str] = {
    BRADLEY_TERRY: "league.see.reports.ratings:read_ratings",
    "openskill": "league.judge.tournaments.openskill_ratings:read_skills",
    "meta-game": "league.see.reports.meta_game:read_meta_game",
}
"""Name -> "module:attribute" of a function from a run folder to a `RatingReport`."""


class RatingReport(Protocol):
    """A rating of the frozen policies of a run, strongest first."""

    def to_json(self) -> str:
        """As one JSON object, its `rows` one for each policy."""
        ...

    def text(self) -> str: ...


def read_rating_model(path: Path, model: str) -> RatingReport:
    """Rate a run, also a live one, by a registered model or a "module:attribute" of the user's own.

    Raises:
      LeagueError: there is no such model. MissingRun, JournalError.
    """
    try:
        read = cast(Callable[[Path], RatingReport], resolve(model, RATING_MODELS, what="rating model"))
    except PluginError as error:
        raise LeagueError(f"{error}.") from error
    return read(path)

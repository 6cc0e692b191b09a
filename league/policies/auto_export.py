"""The name "auto": which export of a run to play where nobody says, by the kind of its game and what is known.

Where every seat sees everything and one moves at a time, the strongest policy is the hardest to beat: "best", or the
moving average of the weights where that has beaten it. Elsewhere strength misleads, for whatever beats all others of
a small population may lose to a reply that nobody there plays. The least exploitable one is known where the game is
small (`ExactExports`). Else it is taken from what training produces: a moving average of the weights, a mean over the
course of training, or the last weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.meta_game import exported_snapshots
from league.core.state.state import LeagueState, PlayerState

BEST, MIXTURE, AVERAGE, EMA, LAST, AUTO = "best", "mixture", "average", "ema", "last", "auto"
EXACT = "exact"
EXPORTS = (EMA, LAST, AVERAGE, MIXTURE, BEST, EXACT)
"""Names of the exports that "auto" chooses among; of equals the earlier one, which costs less to play."""

MIN_MEAN_SNAPSHOTS = 10
"""Trained snapshots of main agents from which on their mean stands for the course of training. With 11 to 19 of them,
on three games of simultaneous moves, the mean lost 10 to 27 % less to a best reply than the moving average of the
weights. With one it lost up to three times as much; in poker the moving average lost less with 18 as well."""

EVEN = 0.5
"""Score of a policy against one that is as strong."""

MAX_SHORT = 32
"""Decisions of one seat in a game up to which simultaneous play circles around an equilibrium as a whole. In longer
games a mean over policies is a weaker player, and one network costs less."""


@dataclass(frozen=True)
class ExportMatch:
    """The score of `ema` against `best` with its 95 % interval, in [0, 1], and the games that were played."""

    score: float
    low: float
    high: float
    games: int


@dataclass(frozen=True)
class ExactExports:
    """Exact exploitability of the exports of a run, each of the policies that it stood for.

    Fields:
      values: export -> NashConv in the rewards of the game.
      made_of: export -> digest of the policies that it stood for, also of one whose value there was no time for.
      mixture: snapshot -> weight of the least exploitable mixture that was found, empty where none was sought.
      deals: different draws of chance that the values are taken over, where there are probably more; None where none
        is missing.
      refusal: why the game has no exact values, a sentence; empty where it has.
      limit_s: seconds that the search had.
      is_current: False where some exports have changed since.
      match: instead of values where every seat sees everything; None where none was played.
    """

    values: Mapping[str, float]
    made_of: Mapping[str, str] = field(default_factory=dict)
    mixture: Mapping[str, float] = field(default_factory=dict)
    deals: int | None = None
    refusal: str = ""
    limit_s: float = 0.0
    is_current: bool = True
    match: ExportMatch | None = None


def auto_choice(state: LeagueState, exact: ExactExports | None = None) -> tuple[str, str]:
    """The export that "auto" stands for, and one sentence on why. exact: values of the exports as they are now."""
    if not state.is_competitive:
        return BEST, "in a game of one team only strength counts"
    if state.perfect_information:
        why = "every seat sees everything in this game, so that the strongest is the hardest to beat"
        match = None if exact is None else exact.match
        if match is not None and match.low > EVEN:
            interval = f"{match.score:.2f} [{match.low:.2f}, {match.high:.2f}]"
            return EMA, f"{why}, and it scored {interval} against best in {match.games} games"
        return BEST, why
    if exact is not None and exact.values and (exact.is_current or EXACT in exact.values):
        name = min((export for export in EXPORTS if export in exact.values), key=lambda export: exact.values[export])
        known = ", ".join(f"{export} {exact.values[export]:.3g}" for export in EXPORTS if export in exact.values)
        measure = "the exact NashConv" if exact.deals is None else f"the NashConv over {exact.deals} draws of chance"
        return name, f"it is the least exploitable by {measure} of each export ({known})"
    trained = [name for name in exported_snapshots(state) if state.snapshots[name].trained_steps > 0]
    if state.moves_at_once and is_short(state) and len(trained) >= MIN_MEAN_SNAPSHOTS:
        return AVERAGE, f"{len(trained)} snapshots circle around an equilibrium of a short game of simultaneous moves"
    if keeps_average(state):
        return EMA, "the moving average of the weights is the least exploitable as a rule in a game like this one"
    return (AVERAGE if len(trained) >= MIN_MEAN_SNAPSHOTS else LAST), "the learners keep no moving average of weights"


def is_short(state: LeagueState) -> bool:
    """True if a seat decides up to `MAX_SHORT` times in a game on average."""
    return state.totals.decisions <= MAX_SHORT * state.num_seats * state.totals.games


def keeps_average(state: LeagueState) -> bool:
    """True if the newest restart state of a main agent that has trained holds a moving average of its weights."""
    saved = [player.checkpoint for player in main_players(state) if player.checkpoint is not None]
    return any(pointer.has_ema and pointer.trained_steps > 0 for pointer in saved)


def main_players(state: LeagueState) -> list[PlayerState]:
    """The main agents; every player where there is none."""
    players = list(state.players.values())
    return [player for player in players if player.role == MAIN_ROLE] or players

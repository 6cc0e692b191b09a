"""The name "auto": which export of a run to play where nobody says, by the kind of its game and what is known.

Where one side moves at a time and nothing hidden is known, the strongest policy is the hardest to beat: "best", or the
last weights or their moving average where games have shown that these are stronger. Elsewhere strength misleads, for
whatever beats all others of a small population may lose to a reply that nobody there plays. The least exploitable one
is known where the game is small (`ExactExports`). Else it is taken from what training produces: a moving average of the
weights, a mean over the course of training, or the last weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.meta_game import exported_snapshots
from league.core.state.state import LeagueState, PlayerState
from league.envs.text.number_text import number_text

BEST, MIXTURE, AVERAGE, EMA, LAST, AUTO = "best", "mixture", "average", "ema", "last", "auto"
EXACT = "exact"
EXPORTS = (EMA, LAST, AVERAGE, MIXTURE, BEST, EXACT)
"""Names of the exports that "auto" chooses among; of equals the earlier one, which costs less to play."""

MIN_MEAN_SNAPSHOTS = 10
"""Trained snapshots of main agents from which on their mean stands for the course of training. With 11 to 19 of them,
on three games of simultaneous moves, the mean lost 10 to 27 % less to a best reply than the moving average of the
weights. With one it lost up to three times as much; in poker the moving average lost less with 18 as well."""

CHALLENGERS = (LAST, EMA)
"""Exports that play the one chosen so far, in this order, where the strongest is sought; the first is "best"."""

MAX_SHORT = 32
"""Decisions of one seat in a game up to which simultaneous play circles around an equilibrium as a whole. In longer
games a mean over policies is a weaker player, and one network costs less."""


@dataclass(frozen=True)
class ExportMatch:
    """A match of two exports, from the side of `home`.

    Fields:
      home, away: their names.
      score, low, high: with its 95 % interval. even: of policies that are as strong; 0 where the run counts returns.
      games: that were played. limit_s: seconds that they had.
    """

    home: str
    away: str
    score: float
    low: float
    high: float
    games: int
    even: float = 0.5
    limit_s: float = 0.0

    @property
    def text(self) -> str:
        """The score for people."""
        return f"{self.score:.2f} [{self.low:.2f}, {self.high:.2f}] in {self.games} games"


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
      matches: of exports whose strength decides, each pair once.
    """

    values: Mapping[str, float]
    made_of: Mapping[str, str] = field(default_factory=dict)
    mixture: Mapping[str, float] = field(default_factory=dict)
    deals: int | None = None
    refusal: str = ""
    limit_s: float = 0.0
    is_current: bool = True
    matches: tuple[ExportMatch, ...] = ()

    def match_of(self, home: str, away: str) -> ExportMatch | None:
        """The match of two exports; None where none was played."""
        return next((match for match in self.matches if (match.home, match.away) == (home, away)), None)


def auto_choice(state: LeagueState, exact: ExactExports | None = None) -> tuple[str, str]:
    """The export that "auto" stands for, and one sentence on why. exact: values of the exports as they are now."""
    if not state.is_competitive:
        return BEST, "in a game of one team only strength counts"
    if exact is not None and exact.values and (exact.is_current or EXACT in exact.values):
        name = min((export for export in EXPORTS if export in exact.values), key=lambda export: exact.values[export])
        known = ", ".join(
            f"{export} {number_text(exact.values[export])}" for export in EXPORTS if export in exact.values
        )
        measure = "the exact NashConv" if exact.deals is None else f"the NashConv over {exact.deals} draws of chance"
        return name, f"it is the least exploitable by {measure} of each export ({known})"
    if state.kind.is_won_by_strength:
        return strongest_export(state, exact)
    trained = [name for name in exported_snapshots(state) if state.snapshots[name].trained_steps > 0]
    if state.kind.at_once and is_short(state) and len(trained) >= MIN_MEAN_SNAPSHOTS:
        return AVERAGE, f"{len(trained)} snapshots circle around an equilibrium of a short game of simultaneous moves"
    if keeps_average(state):
        return EMA, "the moving average of the weights is the least exploitable as a rule in a game like this one"
    return (AVERAGE if len(trained) >= MIN_MEAN_SNAPSHOTS else LAST), "the learners keep no moving average of weights"


def strongest_export(state: LeagueState, exact: ExactExports | None) -> tuple[str, str]:
    """The export that no match has shown to be weaker than another, and one sentence on why."""
    known = "every seat sees everything" if state.kind.information == "open" else "nothing hidden is known"
    why = f"{known} in this game, so that the strongest is the hardest to beat"
    chosen, beaten = BEST, ""
    for challenger in CHALLENGERS:
        match = None if exact is None else exact.match_of(challenger, chosen)
        if match is not None and match.low > match.even:
            chosen, beaten = challenger, f", and it scored {match.text} against {chosen}"
    if exact is None or not exact.matches:
        beaten = ", and `league eval` lets the last weights and their average play it"
    return chosen, why + beaten


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

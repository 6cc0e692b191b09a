"""Resolves a policy name: an export such as auto or best, a player, a snapshot or tag, or a mixture of these."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.meta_game import exported_snapshots, own_snapshots
from league.core.metagame.ratings import RatingRow, league_ratings, strongest
from league.core.state.records import ProbeReading, SnapshotInfo
from league.core.state.state import CheckpointPointer, LeagueState
from league.envs.text.number_text import number_text
from league.errors import LeagueError
from league.policies.auto_export import (
    AUTO,
    AVERAGE,
    BEST,
    EMA,
    EXACT,
    EXPORTS,
    LAST,
    MIXTURE,
    ExactExports,
    auto_choice,
    main_players,
)
from league.policies.measured_returns import before_fall
from league.policies.nash_export import league_mixture
from league.wording import counted

DRAWN = (MIXTURE, AVERAGE, EXACT)
"""Names that stand for several snapshots; one of them is drawn for each game."""
AND, TIMES = "+", "*"
"""Write a mixture of one's own: "main-0-s7*2+main-0-s9" draws the first of them in two games of three."""
MIN_FRACTION = 0.5
"""Fraction of the strongest snapshot's games that another needs to count as equal: a wide interval meets any other."""

WORTH_SHOWING = 0.1
"""Fraction of a learner's training that must be newer than the newest snapshot for its restart state to be shown."""


class UnknownPolicy(LeagueError):  # noqa: N818
    """A name that stands for no snapshot of the league."""


@dataclass(frozen=True)
class Selection:
    """The snapshots that a name stands for.

    Fields:
      name: as asked for.
      members: (weight, snapshot), heaviest first; weights sum to 1. Empty where `checkpoint` is given.
      reason: one sentence on why these.
      checkpoint: the restart state of the learner of `player`, where that is newer than its snapshots.
      player: whose restart state it is; empty for snapshots.
      is_ema: whether the moving average of the weights in it is meant, and not the weights themselves.
      is_drawn: whether it is a mixture, of which a member is drawn for each game.
    """

    name: str
    members: tuple[tuple[float, SnapshotInfo], ...]
    reason: str
    checkpoint: CheckpointPointer | None = None
    is_drawn: bool = False
    player: str = ""
    is_ema: bool = False


def choose(state: LeagueState, player: str, *, exact: ExactExports | None = None) -> Selection:
    """The snapshots, or the restart state, that `player` stands for.

    Args:
      exact: the exact values of the run's exports where they are known; "auto" asks for them.
    Raises:
      UnknownPolicy: none; the message names the nearest.
    """
    if player == AUTO and state.snapshots:
        name, reason = auto_choice(state, exact)
        chosen = choose(state, name, exact=exact)
        return replace(chosen, name=AUTO, reason=f"{name}, as {reason}: {chosen.reason}")
    own = bool(own_snapshots(state))
    if not state.snapshots or (player in (AUTO, *EXPORTS) and not own):
        raise UnknownPolicy("the run has no snapshot yet: let it train until `league status` counts one.")
    if AND in player or TIMES in player:
        return _mixture_of(state, player, exact)
    if player == BEST:
        return _best(state)
    if player == MIXTURE:
        members = tuple((weight, state.snapshots[name]) for name, weight in league_mixture(state))
        reason = (
            f"the mixture that no other snapshot reliably beats, of the {len(exported_snapshots(state))} that are "
            f"exported, by {state.scoring.score}"
        )
        return Selection(player, members, reason, is_drawn=True)
    if player == AVERAGE:
        return _average(state)
    if player == EXACT:
        return _exact(state, exact)
    if player in (EMA, LAST):
        return _of_restart_state(state, player)
    if player in state.snapshots:
        return Selection(player, ((1.0, state.snapshots[player]),), "the snapshot of that name")
    if player in state.tags:
        tagged = state.tags[player]
        return Selection(player, ((1.0, state.snapshots[tagged]),), f"{tagged}, which is tagged so")
    of_player = [state.snapshots[name] for name in own_snapshots(state) if state.snapshots[name].player == player]
    pointer = state.players[player].checkpoint if player in state.players else None
    if pointer is not None and (not of_player or pointer.trained_steps > of_player[-1].trained_steps):
        return _as_saved(player, player, pointer)
    if of_player:
        return Selection(player, ((1.0, of_player[-1]),), f"the newest snapshot of {player}")
    known = [AUTO, *EXPORTS, *state.tags, *state.players, *state.snapshots]
    near = difflib.get_close_matches(player, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known[:12])}."
    raise UnknownPolicy(f"the run has no player or snapshot {player!r}; {hint}")


def _average(state: LeagueState) -> Selection:
    """The second half of the snapshots of every main agent (of every player where there is none), each as likely.

    The last iterate of self-play can be beaten by a memorised line; the average over its later course is what
    fictitious play converges with, and hardly weaker.
    """
    mains = [state.snapshots[name] for name in exported_snapshots(state)]
    players = dict.fromkeys(snapshot.player for snapshot in mains)
    courses = [[snapshot for snapshot in mains if snapshot.player == player] for player in players]
    later = [snapshot for course in courses for snapshot in course[len(course) // 2 :]]
    reason = f"the second half of the snapshots of {', '.join(players)}, each as likely"
    members = tuple((1.0 / len(later), snapshot) for snapshot in later)
    return Selection(AVERAGE, members, reason, is_drawn=True)


def _exact(state: LeagueState, exact: ExactExports | None) -> Selection:
    """The least exploitable mixture of a game small enough to compute every best reply.

    Raises:
      UnknownPolicy: none is known of the snapshots that there are.
    """
    if exact is None or not exact.mixture:
        raise UnknownPolicy(f"the run has no {EXACT} mixture, take auto: {_why_no_exact(state, exact)}")
    ordered = sorted(exact.mixture.items(), key=lambda part: -part[1])
    members = tuple((weight, state.snapshots[name]) for name, weight in ordered)
    value = number_text(exact.values[EXACT])
    whose = "main agents' " if {snapshot.role for _, snapshot in members} == {MAIN_ROLE} else ""
    reason = f"the mixture of {whose}snapshots that loses least to exact best responses: {value}"
    return Selection(EXACT, members, reason, is_drawn=True)


def _why_no_exact(state: LeagueState, exact: ExactExports | None) -> str:
    """A sentence on what stands against an exact mixture, or on what would compute it."""
    if not state.is_competitive:
        return "in a game of one team there is no reply to compute."
    if state.kind.is_won_by_strength and state.kind.information == "open":
        return "every seat sees everything in this game, so that the strongest is the hardest to beat."
    if all(state.snapshots[name].trained_steps == 0 for name in exported_snapshots(state)):
        return "it has no trained snapshot yet."
    if exact is not None and exact.refusal:
        return exact.refusal
    if exact is not None and EXACT in exact.made_of:
        return f"the search for it was not over after {exact.limit_s:.0f} s."
    return "`league eval` computes it for these snapshots, where the game is small enough."


def _mixture_of(state: LeagueState, written: str, exact: ExactExports | None) -> Selection:
    """A mixture that the user wrote: names with weights, each name again any that stands for snapshots.

    Raises:
      UnknownPolicy: a weight is no positive number, or a name stands for no snapshot.
    """
    probabilities: Counter[str] = Counter()
    for part in written.split(AND):
        name, times, factor = part.strip().partition(TIMES)
        weight = _weight(factor, part) if times else 1.0
        chosen = choose(state, name.strip(), exact=exact)
        if chosen.checkpoint is not None:
            raise UnknownPolicy(f"{name} stands for its learner's restart state: a mixture is of snapshots, name one.")
        for probability, snapshot in chosen.members:
            probabilities[snapshot.snapshot_id] += weight * probability  # type: ignore[assignment]  # a Counter adds floats as well
    total = sum(probabilities.values())
    members = tuple((probability / total, state.snapshots[name]) for name, probability in probabilities.most_common())
    return Selection(written, members, "the mixture that was asked for", is_drawn=True)


def _weight(text: str, part: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0.0 < weight < math.inf:
        raise UnknownPolicy(f"{part!r}: a part of a mixture is NAME or NAME{TIMES}WEIGHT, with a weight above 0.")
    return weight


def _best(state: LeagueState) -> Selection:
    """The newest snapshot of the strongest main agent that is not significantly weaker than its strongest one.

    Of any player where there is no main agent: an exploiter is rated by what it was trained to beat, and nobody was
    trained to beat it. Strongest is the highest rating by its lower bound. Among dozens that are even as far as the
    games tell, the highest figure is luck; that a player has trained longer is not. Where intervals do not meet, or one
    rests on less than `MIN_FRACTION` of the games, they are not even.

    Never the untrained network once there is a trained one. Without rated games of trained snapshots it is the newest
    of these. Where a main agent has trained notably more since, it is that one as its learner was last saved. Restart
    states are saved at every stop and during a run. So a deterministic run has trained weights although it freezes none
    at a stop. In a game of one team measured returns take the place of ratings where they show a fall.
    """
    candidates, rows = _candidates(state)
    fall = None if state.is_competitive else before_fall(state, candidates)
    if fall is not None:
        reason = (
            f"the newest snapshot that returned as much as any: {_interval(fall.kept)}; {fall.fallen_snapshot} "
            f"returned {_interval(fall.fallen)}"
        )
        return Selection(BEST, ((1.0, state.snapshots[fall.snapshot]),), reason)
    saved = _most_trained(state)
    newest = state.snapshots[candidates[-1]]
    top = strongest(rows)
    if top is not None and top.games > 0 and (newest.trained_steps > 0 or saved is None):
        return _newest_even(state, rows, top)
    if saved is not None and (1.0 - WORTH_SHOWING) * saved[1].trained_steps > newest.trained_steps:
        return _as_saved(BEST, *saved, because=f", as {_why_unrated(state, 'trained snapshot')}")
    why = _why_unrated(state, "snapshot" if newest.trained_steps == 0 else "trained snapshot")
    return Selection(BEST, ((1.0, newest),), f"the newest snapshot of {newest.player}, as {why}")


def _interval(reading: ProbeReading) -> str:
    """A mean return and its interval, for people."""
    return f"{number_text(reading.value, 4)} [{number_text(reading.low, 4)}, {number_text(reading.high, 4)}]"


def _candidates(state: LeagueState) -> tuple[list[str], tuple[RatingRow, ...]]:
    """The trained snapshots that exports choose among (the untrained where none is), oldest first, and ratings."""
    exported = exported_snapshots(state)
    candidates = [name for name in exported if state.snapshots[name].trained_steps > 0] or exported
    return candidates, tuple(row for row in league_ratings(state) if row.policy in set(candidates))


def _why_unrated(state: LeagueState, what: str) -> str:
    return f"no {what} has a rated game yet" if state.is_competitive else "a game of one team has no ratings"


def _newest_even(state: LeagueState, rows: Sequence[RatingRow], top: RatingRow) -> Selection:
    """The newest snapshot of a player that is even with its strongest, `top`."""
    player = state.snapshots[top.policy].player
    least = MIN_FRACTION * top.games
    even = {row.policy: row for row in rows if row.games >= least and row.high >= top.low}
    row = [even[name] for name, known in state.snapshots.items() if name in even and known.player == player][-1]
    interval = f"[{row.low:.0f}, {row.high:.0f}]"
    reason = (
        f"the newest of {player} that is not significantly weaker than its strongest: {row.elo:.0f} Elo {interval} "
        f"over {counted(row.games, 'game')}, by {state.scoring.score}"
    )
    return Selection(BEST, ((1.0, state.snapshots[row.policy]),), reason)


def _of_restart_state(state: LeagueState, name: str) -> Selection:
    """The last weights of the strongest main agent, or their moving average.

    Strongest is the one with the snapshot of the highest rating by its lower bound; before a trained one has rated
    games, the one that has trained most. Restart states are saved at every stop. Where a snapshot is newer, it holds
    the last weights.

    Raises:
      UnknownPolicy: no moving average is kept.
    """
    saved = _of_strongest(state) or _most_trained(state)
    if name == EMA:
        if saved is None or not saved[1].has_ema:
            raise UnknownPolicy(
                f"the run has no {EMA}: its learners keep no moving average (learner.ema_share is 0), or have not "
                "saved one yet; take last or average."
            )
        player, pointer = saved
        reason = f"the moving average of the weights of {player}, as last saved at {pointer.trained_steps:,} steps"
        return Selection(name, (), reason, pointer, player=player, is_ema=True)
    exported = [state.snapshots[name] for name in exported_snapshots(state)]
    own = [snapshot for snapshot in exported if saved is None or snapshot.player == saved[0]]
    if saved is None or (own and own[-1].trained_steps >= saved[1].trained_steps):
        return Selection(name, ((1.0, own[-1]),), f"the newest snapshot of {own[-1].player}")
    return _as_saved(name, *saved)


def _of_strongest(state: LeagueState) -> tuple[str, CheckpointPointer] | None:
    """The trained restart state of the player with the strongest snapshot; None where there is none, or no choice."""
    saved = _trained_states(state)
    if len(saved) < 2:
        return None
    top = strongest(_candidates(state)[1])
    player = "" if top is None or not top.games else state.snapshots[top.policy].player
    return (player, saved[player]) if player in saved else None


def _most_trained(state: LeagueState) -> tuple[str, CheckpointPointer] | None:
    """The main agent (the player, where there is none) with the most trained restart state; None if none is trained."""
    return max(_trained_states(state).items(), key=lambda known: known[1].trained_steps, default=None)


def _trained_states(state: LeagueState) -> dict[str, CheckpointPointer]:
    """The restart states of the main agents (of all players, where there is none) that have trained."""
    return {
        player.name: player.checkpoint
        for player in main_players(state)
        if player.checkpoint is not None and player.checkpoint.trained_steps > 0
    }


def _as_saved(name: str, player: str, pointer: CheckpointPointer, *, because: str = "") -> Selection:
    """The restart state of a player's learner."""
    reason = f"{player} as it was last saved, at {pointer.trained_steps:,} steps{because}"
    return Selection(name, (), reason, pointer, player=player)

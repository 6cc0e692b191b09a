"""The records that the league core exchanges with the daemon: who sits where, what a lease asks for, what came of it.

Shape letter: S seats of the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

BOT_PREFIX, IMPORTED_PREFIX = "bot:", "imported:"
"""A policy id that starts so is a scripted bot (`bot:tactical`), or a frozen policy that was trained elsewhere; any
other is a player or a snapshot."""


def is_bot(policy: str) -> bool:
    """True for the policy id of a scripted bot."""
    return policy.startswith(BOT_PREFIX)


def bot_name(policy: str) -> str:
    """NAME of "bot:NAME"; a name without the prefix is returned as it is."""
    return policy.removeprefix(BOT_PREFIX)


def is_from_outside(policy: str) -> bool:
    """True for a bot or an imported policy, which no player of the league was frozen to."""
    return policy.startswith((BOT_PREFIX, IMPORTED_PREFIX))


@dataclass(frozen=True)
class GameKind:
    """The kind of a game, decided once for a run: settings, exports, evaluations and play go by it.

    Fields:
      information: "open" where every seat is known to see everything, "hidden" where one does not, "unknown" where
        nobody can say and nothing hidden was seen.
      at_once: whether several seats move in the same turn.
      sides: number of teams.
    """

    information: str = "hidden"
    at_once: bool = False
    sides: int = 2

    @property
    def hides(self) -> bool:
        """True if a seat does not see everything. What is not known is taken for open."""
        return self.information == "hidden"

    @property
    def is_won_by_strength(self) -> bool:
        """True if sides move in turn and nothing hidden is known: the strongest policy is the hardest to beat."""
        return not (self.hides or self.at_once)

    @property
    def must_mix(self) -> bool:
        """True if a fixed choice of actions is easily exploited, so that policies are judged by sampled ones.

        With more than two sides in turn, those behind can agree against whom they foresee.
        """
        return self.at_once or (self.sides > 1 and (self.hides or self.sides > 2))


HIDDEN = GameKind()
"""Of two sides in turn, where nobody has said anything: what is hard to exploit is hardly weaker."""


@dataclass(frozen=True)
class Hyperparameter:
    """A PBT value of a player.

    Fields:
      name: `learning_rate`, `entropy_cost`, `discount`, `pfsp_exponent` or `self_play`.
      value: of `learning_rate` and `entropy_cost` a factor on what is configured (1 is unchanged), of `discount` a
        factor on 1 - gamma; of the others the value itself.
    """

    name: str
    value: float


@dataclass(frozen=True)
class Assignment:
    """One way to fill the seats, and its fraction of the episodes that start under a lease.

    Fields:
      policies: [S] policy id per seat: a player (newest weights), a snapshot (frozen) or `bot:NAME`.
      records: [S] whether the seat's decisions are sent to the learner of the lease's home player.
      probability: probability that a new episode takes this assignment; the probabilities of a lease sum to 1.
    """

    policies: tuple[str, ...]
    records: tuple[bool, ...]
    probability: float


@dataclass(frozen=True)
class Lease:
    """The work of one actor host for a while: a table of assignments and a number of env steps.

    Fields:
      lease_id: unique in the journal; the answer to it counts once.
      token: fencing token, the number of the daemon's start; an answer with another token is refused.
      host: actor host that works on it.
      home: player that learns from the recorded seats; None for a rating match (every seat frozen, nothing recorded).
      assignments: table from which each new episode draws its assignment.
      steps: number of times each of the host's games is stepped before it answers.
      generation: resets and transplants of the home so far; games in flight of an earlier one are thrown away.
      num_envs: games that the host steps together, the bound of what it can answer; 0 where that is not known.
      after_training: whether it is one of the rating matches after the budget, whose env steps are not training's.
    """

    lease_id: int
    token: int
    host: str
    home: str | None
    assignments: tuple[Assignment, ...]
    steps: int
    generation: int = 0
    num_envs: int = 0
    after_training: bool = False

    @property
    def policies(self) -> tuple[str, ...]:
        """Every policy that its assignments name, once."""
        return tuple(dict.fromkeys(policy for assignment in self.assignments for policy in assignment.policies))


@dataclass(frozen=True)
class AssignmentOutcome:
    """Totals of the episodes of one assignment that ended under one lease.

    Fields:
      policies: [S] as in the assignment.
      games: episodes that ended by the rules or by a time limit.
      aborted: episodes thrown away because their env failed; in no other count.
      decisions: decisions taken in the counted games, all seats together.
      wins: [S][S], wins[i][j] = games in which the team of seat i had a higher return than that of seat j.
      draws: [S][S], equal returns; symmetric. For seats of different teams wins[i][j] + wins[j][i] + draws[i][j] is
        `games`.
      return_sums: [S] sum of undiscounted returns per seat.
      truncated: those of the games that a time limit ended, whatever their result.
      placements: (ranks, games) for each order in which the teams finished, sorted; ranks holds for each team, in the
        order of their first seats, how many teams finished before it, so that equal ones are a tie. Together `games`.
        Empty in games of two seats or of one team, where wins and draws say it all, and in journals of before it was
        kept.
    """

    policies: tuple[str, ...]
    games: int
    aborted: int
    decisions: int
    wins: tuple[tuple[int, ...], ...]
    draws: tuple[tuple[int, ...], ...]
    return_sums: tuple[float, ...]
    truncated: int = 0
    placements: tuple[tuple[tuple[int, ...], int], ...] = ()


@dataclass(frozen=True)
class Progress:
    """A player's training so far: learner updates (its version) and recorded decisions it has learnt from."""

    player: str
    version: int
    trained_steps: int


@dataclass(frozen=True)
class SnapshotInfo:
    """An immutable member of the population.

    Fields:
      snapshot_id: `<player>-s<number>`, the number counting the player's snapshots from 0.
      digest: sha256 (hex) of its weights file, the address in the snapshot store.
      player, role: who made it.
      parent: snapshot that its weights descend from, None for a first one.
      version, trained_steps: the player's progress when it was taken.
      reason: why it was taken ("initial", "gate", "timeout", "final", ...).
    """

    snapshot_id: str
    digest: str
    player: str
    role: str
    parent: str | None
    version: int
    trained_steps: int
    reason: str


INITIAL = "initial"
"""Reason of the snapshot of a player's first weights."""


class DirectiveKind(StrEnum):
    """Kinds of directive to a learner host: freeze a player's weights, reset it, or transplant into it."""

    SNAPSHOT = "snapshot"
    RESET = "reset"
    TRANSPLANT = "transplant"


@dataclass(frozen=True)
class Parent:
    """One of several players of whose weights a transplant is the mean.

    checkpoint: digest of its restart state. weight: its part of the mean; those of all parents sum to 1.
    """

    player: str
    checkpoint: str
    weight: float


@dataclass(frozen=True)
class Directive:
    """A directive to a learner host; open in the state until confirmed, so that a restart carries on with it.

    Fields:
      directive_id: unique in the journal.
      kind: freeze the player's weights, start again from `source`, or continue from the restart state of another
        player with other hyperparameters.
      player: whom it concerns.
      reason: why.
      source: for a reset, the snapshot whose weights it starts from; for a transplant, the one that the donor's weights
        descend from.
      donor, checkpoint: for a transplant, the player that is copied and the digest of its restart state, which must not
        be deleted while the directive is open.
      hyperparameters: for a transplant, those that the player continues with.
      parents: for a transplant of a weighted mean, all of whom it is, the donor among them; empty for a copy.
    """

    directive_id: int
    kind: DirectiveKind
    player: str
    reason: str
    source: str | None = None
    donor: str | None = None
    checkpoint: str | None = None
    hyperparameters: tuple[Hyperparameter, ...] = ()
    parents: tuple[Parent, ...] = ()

    @property
    def blocks(self) -> bool:
        """True where the player waits meanwhile: its weights are not there yet, or about to be thrown away."""
        return self.kind is not DirectiveKind.SNAPSHOT or self.reason == INITIAL


@dataclass(frozen=True)
class ProbeTask:
    """A probe of one snapshot, see `league.judge.probes.probe`.

    Fields:
      number: of the probe, from 1 in the journal; a second answer to it does not count.
      probe: its name in `probes.kinds`. snapshot: what is measured.
      against: snapshots that it is to meet, where the probe is one against the league's own past.
    """

    number: int
    probe: str
    snapshot: str
    against: tuple[str, ...] = ()


ReadingScale = Literal["score", "loss", "return"]


@dataclass(frozen=True)
class ProbeReading:
    """A number that a probe measured.

    Fields:
      yardstick: what the snapshot was measured by, such as "tactical" or "nash_conv".
      value: the number. low, high: its 95 % interval, 90 % for a return; equal to it where it is exact.
      games: that it rests on; 0 where it is computed.
      scale: "score" for a share of points in [0, 1], of which more is better; "loss" for a number of which less is
        better; "return" for a mean return, of which more is better.
      note: a few words for people.
      identity: of who was met, where that can change under one name; only readings of one identity compare.
    """

    yardstick: str
    value: float
    low: float
    high: float
    games: int = 0
    scale: ReadingScale = "score"
    note: str = ""
    identity: str = ""


@dataclass(frozen=True)
class ProbeOutcome:
    """The end of a probe.

    Fields:
      number: of the probe.
      readings: its results; none where `problem` says why. unfit: whether it can never measure this league.
      remark: what it left out while it measured the rest, and why.
      core_seconds: processor time of the measurement. start_core_seconds: of starting its process, where it was the
        first there.
    """

    number: int
    readings: tuple[ProbeReading, ...] = ()
    core_seconds: float = 0.0
    start_core_seconds: float = 0.0
    problem: str = ""
    unfit: bool = False
    remark: str = ""

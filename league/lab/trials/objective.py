"""The measure of a trial."""

from __future__ import annotations

from typing import Literal

import msgspec

ObjectiveKind = Literal["yardsticks", "exploiter", "exact", "column"]


class TrialObjective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measure of a trial; more is better.

    Fields:
      kind: "yardsticks" is the mean score against bots, or the mean return in a game of one team; "exploiter" is one
        minus the score that a new player reaches that trains against the trial alone; "exact" is minus NashConv;
        "column" is a number that the run has anyway.
      bots: of the yardsticks. games: of each match. core_seconds: of the exploiter's training.
      column: a cost of the run, or the name of a metric, whose last value is taken.
    """

    kind: ObjectiveKind = "yardsticks"
    bots: tuple[str, ...] = ("random", "tactical", "mcts:25")
    games: int = 200
    core_seconds: float = 10.0
    column: str = ""

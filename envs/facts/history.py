"""Tells from random play whether a lone seat must remember: whether what follows depends on more than it sees now.

Compare what follows a decision with what followed it on two earlier occasions, one with the same past and one with
another. Where an observation holds all that counts, both are equally good guesses, and each comparison is a fair coin.
If instead the one with the same past is right where the other one is wrong, the past counts.

Shape letter: N games.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import Turn

MAX_DECISIONS = 20_000
"""Decisions that are looked at."""

MAX_BYTES = 4096
"""Size beyond which an observation counts as a picture: one frame never holds speeds, and memory of it is dear."""

MIN_DEVIATIONS, MAX_LOST_SHARE = 6.0, 0.3
"""Lead of the same past over the other one at some decision, in standard deviations of a fair coin, and the share of
comparisons that it may lose: where it is hardly better than the other, remembering would bring little."""


@dataclass
class _Known:
    """One decision's outcomes by the past that it followed.

    Fields:
      by_past: the last outcome of each past. last: the last past; other: the last one that differs from it.
      won: comparisons in which the same past was right and the other wrong. lost: the other way round.
    """

    by_past: dict[int, int] = field(default_factory=dict)
    last: int | None = None
    other: int | None = None
    won: int = 0
    lost: int = 0

    @property
    def past_counts(self) -> bool:
        """True if the past tells what follows this decision."""
        decided = self.won + self.lost
        return self.won - self.lost >= MIN_DEVIATIONS * max(decided, 1) ** 0.5 and self.lost <= MAX_LOST_SHARE * decided


class Comparisons:
    """Compares what followed the same decision, by one kind of past."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    @property
    def past_counts(self) -> bool:
        """True if the past tells what follows at least one decision."""
        return any(known.past_counts for known in self._known.values())

    def note(self, decision: int, past: int, outcome: int) -> None:
        """One decision, what came before it, and what followed."""
        known = self._known.setdefault(decision, _Known())
        same = known.by_past.get(past)
        other = known.last if known.last != past else known.other
        if same is not None and other is not None:
            is_right, other_is_right = outcome == same, outcome == known.by_past[other]
            known.won += is_right and not other_is_right
            known.lost += other_is_right and not is_right
        known.by_past[past] = outcome
        if known.last != past:
            known.last, known.other = past, known.last


class History:
    """Collects the decisions of games of one seat; call `decided` and `stepped` in turn for every step."""

    def __init__(self) -> None:
        self._by_start, self._by_step = Comparisons(), Comparisons()
        self._num_decisions = 0
        self.restart(num_envs=0)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._start: list[int | None] = [None] * num_envs
        self._step: list[int] = [0] * num_envs
        self._decision: dict[int, int] = {}

    @property
    def past_counts(self) -> bool:
        """True if the start of an episode, or the step before, tells what the observation does not."""
        return self._by_start.past_counts or self._by_step.past_counts

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        self._decision = {}
        if self._num_decisions >= MAX_DECISIONS or shows_picture(turn):
            return
        for slot, game in enumerate(turn.env_index.tolist()):
            seen = seen_in(turn, slot)
            if self._start[game] is None:
                self._start[game], self._step[game] = seen, 0
            self._decision[game] = hash((seen, actions[slot].tobytes()))
        self._num_decisions += len(self._decision)

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to. What a time limit ends has no outcome."""
        slots = {game: slot for slot, game in enumerate(turn.env_index.tolist())}
        for game, decision in self._decision.items():
            start = self._start[game]
            assert start is not None
            has_ended = bool(turn.ended[game])
            if not turn.truncated[game] and (has_ended or game in slots):
                follows = 0 if has_ended else seen_in(turn, slots[game])
                outcome = hash((float(turn.rewards[game, 0]), has_ended, follows))
                self._by_start.note(decision, start, outcome)
                self._by_step.note(decision, self._step[game], outcome)
            self._step[game] = decision
            if has_ended:
                self._start[game] = None


def shows_picture(turn: Turn) -> bool:
    """True if an observation is too large to be known again."""
    return sum(array[:1].nbytes for array in turn.obs.values()) > MAX_BYTES


def seen_in(turn: Turn, slot: int) -> int:
    """Stands for the observation of one slot: equal for equal ones."""
    return hash(tuple(array[slot].tobytes() for array in turn.obs.values()))

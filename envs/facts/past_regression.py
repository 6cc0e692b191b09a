"""Tells from random play whether a seat must remember, where numbers hardly ever come twice: by regression.

What follows a decision is predicted from what is seen and done, and once more with what was seen before. Where
positions are seen and speeds are not, the second prediction is far better on rows that it was not fitted to. Opponents
who act at the same time act at random here, which the past does not tell.

Shape letters: N games, S seats, K slots, R rows, D numbers of an observation, F features, Y predicted numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec, Turn

MAX_NUMBERS, MAX_ACTIONS = 64, 64
"""Numbers of an observation, and numbered actions, up to which the regression is cheap and has rows enough."""

MIN_ROWS, MAX_ROWS = 400, 2_000
"""Decisions that are needed, and that are looked at."""

MAX_REPEATED = 0.5
"""Share of observations that came before, beyond which `history` compares them as they are."""

NUM_FEATURES, RIDGE = 100, 0.1
"""Cosines of random directions beside the numbers themselves, and the penalty of their weights."""

MIN_UNEXPLAINED, MIN_GAIN, MIN_DEVIATIONS = 0.3, 0.5, 4.0
"""Least share of a number's variance that what is seen leaves unexplained. Least part of that error that the past takes
away, and the gain in standard errors. Measured on CartPole, Pendulum, Acrobot and MountainCar. Without speeds the gain
is 0.65 or more of an error of 0.5 to 1.3. With them it is at most 0.1 of such an error."""

Array = NDArray[np.float64]
Place = tuple[int, int]
"""Game and seat."""
Row = tuple[Array, Array, Array, float, bool]
"""A decision, its past, the change of what is seen, the reward, and whether the episode ended."""


class PastRegression:
    """Collects the decisions of seats that act in turn after turn; call `decided` and `stepped` for every step.

    Each seat group is looked at by itself.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._actions = spec.actions
        numbered = spec.actions.kind == "categorical"
        self._looks = has_few_numbers(spec) and (not numbered or spec.actions.num_actions <= MAX_ACTIONS)
        groups = [group.seats for group in spec.seat_groups] or [tuple(range(spec.num_seats))]
        self._group_of = {seat: number for number, seats in enumerate(groups) for seat in seats}
        self._rows: list[list[Row]] = [[] for _ in groups]
        self._most = max(MAX_ROWS // len(groups), MIN_ROWS)
        self.restart()

    def restart(self) -> None:
        """Begin with other games; what was seen stays."""
        self._first: dict[Place, Array] = {}
        self._before: dict[Place, Array] = {}
        self._now: dict[Place, tuple[Array, Array]] = {}

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        self._now = {}
        if not self._looks or all(len(rows) >= self._most for rows in self._rows):
            return
        seen, done = numbers_of(turn), self._action_numbers(actions)
        if not np.isfinite(seen).all():
            self._looks = False
            return
        for slot, place in enumerate(_places(turn)):
            self._first.setdefault(place, seen[slot])
            self._now[place] = seen[slot], np.concatenate([seen[slot], done[slot]])

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to. What a time limit or a failure ends has no outcome."""
        if not self._now:
            return
        after, slots = numbers_of(turn), {place: slot for slot, place in enumerate(_places(turn))}
        if not np.isfinite(after).all():
            self._looks = False
            return
        cut_off = turn.truncated if turn.aborted is None else turn.truncated | turn.aborted
        for place, (seen, decision) in self._now.items():
            game, seat = place
            before, has_ended = self._before.get(place), bool(turn.terminated[game])
            rows = self._rows[self._group_of[seat]]
            if before is not None and not cut_off[game] and (has_ended or place in slots) and len(rows) < self._most:
                change = np.zeros_like(seen) if has_ended else after[slots[place]] - seen
                past = np.concatenate([before, self._first[place]])
                rows.append((decision, past, change, float(turn.rewards[game, seat]), has_ended))
            self._before[place] = decision
        for game in np.flatnonzero(turn.terminated | cut_off).tolist():
            for seat in self._group_of:
                self._first.pop((game, seat), None)
                self._before.pop((game, seat), None)

    def found(self) -> tuple[bool, bool]:
        """Two flags: the start of an episode tells what the observation does not; the step before does."""
        kinds = [decisions for rows in self._rows if (decisions := _decisions_of(rows)) is not None]
        return (
            any(_tells_more(decisions, decisions.first) for decisions in kinds),
            any(_tells_more(decisions, decisions.before) or _keeps_moving(decisions) for decisions in kinds),
        )

    def _action_numbers(self, actions: NDArray[np.generic]) -> Array:
        """float64 [N, ...]: numbered actions one-hot, others as they are."""
        if self._actions.kind == "categorical":
            return np.eye(self._actions.num_actions)[actions.astype(np.int64)]
        return actions.astype(np.float64).reshape(len(actions), -1)


def _places(turn: Turn) -> list[Place]:
    """[K] game and seat of each slot."""
    return list(zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True))


@dataclass(frozen=True)
class _Decisions:
    """Decisions whose numbers hardly ever come twice.

    Fields:
      seen: [R, ...] what is seen and done. before: [R, ...] the same of the step before. first: [R, D] what was seen
        at the start. changes: [R, D] of what is seen. results: [R, 2] reward, and whether the episode ended.
    """

    seen: Array
    before: Array
    first: Array
    changes: Array
    results: Array

    @property
    def going(self) -> NDArray[np.bool_]:
        """bool [R], where the episode did not end."""
        return np.asarray(self.results[:, 1] == 0.0)


def _decisions_of(rows: Sequence[Row]) -> _Decisions | None:
    """The rows as arrays; None for too few, or where numbers come again and again, which `history` compares."""
    if len(rows) < MIN_ROWS:
        return None
    seen, pasts, changes, rewards, ends = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    size = changes.shape[1]
    if len(np.unique(seen[:, :size], axis=0)) < (1.0 - MAX_REPEATED) * len(seen):
        return None
    return _Decisions(seen, pasts[:, :-size], pasts[:, -size:], changes, np.stack([rewards, ends], axis=1))


def _tells_more(found: _Decisions, past: Array) -> bool:
    going = found.going
    return tells_more(found.seen, past, found.results) or tells_more(
        found.seen[going], past[going], found.changes[going]
    )


def _keeps_moving(found: _Decisions) -> bool:
    going, size = found.going, found.changes.shape[1]
    steps_before = (found.seen - found.before)[going, :size]
    return keeps_moving(found.seen[going], steps_before, found.changes[going])


def has_few_numbers(spec: EnvSpec) -> bool:
    """True if an observation is small enough for a regression."""
    return sum(int(np.prod(field.shape)) for field in spec.observations.values()) <= MAX_NUMBERS


def tells_more(seen: Array, past: Array, follows: Array) -> bool:
    """True if the past clearly lowers the error of predicting at least one number, on rows that were left out.

    Args:
      seen: [R, ...] what is seen and done. past: [R, ...] what was before. follows: [R, Y].
    """
    rng = np.random.default_rng(0)
    order, half = rng.permutation(len(seen)), len(seen) // 2  # later rows may lie where the earlier ones never came
    seen, past, follows = seen[order], past[order], follows[order]
    varied = (np.ptp(follows[:half], axis=0) > 0) & (np.ptp(follows[half:], axis=0) > 0)
    if half < MIN_ROWS // 2 or not varied.any():
        return False
    follows = follows[:, varied]
    follows = (follows - follows.mean(axis=0)) / follows.std(axis=0)
    alone = random_features(seen, rng)
    with_past = np.concatenate([alone, random_features(np.concatenate([seen, past], axis=1), rng)], axis=1)
    without, remembering = (held_out_errors(features, follows, half) for features in (alone, with_past))
    return _is_clear(without, remembering)


def keeps_moving(seen: Array, steps_before: Array, steps: Array) -> bool:
    """True if the usual steps of a number follow from those before far better than from what is seen.

    Args:
      seen: [R, ...] what is seen and done. steps_before, steps: [R, D] of each number, to here and from here.
    """
    rng = np.random.default_rng(0)
    order = rng.permutation(len(seen))
    seen, steps_before, steps = seen[order], steps_before[order], steps[order]
    alone = random_features(seen, rng)
    with_steps = np.concatenate([alone, scaled(steps_before)], axis=1)
    for number, rows in moving_numbers(steps, steps_before):
        follows = steps[rows, number]
        half = len(follows) // 2
        if not (np.ptp(follows[:half]) > 0 < np.ptp(follows[half:])):
            continue
        follows = ((follows - follows.mean()) / follows.std())[:, None]
        if _is_clear(*(held_out_errors(features[rows], follows, half) for features in (alone, with_steps))):
            return True
    return False


def _is_clear(without: Array, remembering: Array) -> bool:
    """True if remembering clearly lowers the squared errors [R, Y] of at least one number."""
    gain = without - remembering
    error = gain.std(axis=0) / len(gain) ** 0.5
    left = without.mean(axis=0)
    is_clear = gain.mean(axis=0) >= np.maximum(MIN_GAIN * left, MIN_DEVIATIONS * error)
    return bool(np.any(is_clear & (left >= MIN_UNEXPLAINED)))


def numbers_of(turn: Turn) -> Array:
    """float64 [N, D]: all fields of an observation side by side."""
    fields = [np.asarray(array, np.float64).reshape(len(array), -1) for array in turn.obs.values()]
    return np.concatenate(fields, axis=1)


def random_features(numbers: Array, rng: np.random.Generator) -> Array:
    """[R, F]: 1, the varied numbers at the same scale, and cosines along random directions."""
    alike = scaled(numbers)
    directions = rng.normal(size=(alike.shape[1], NUM_FEATURES)) / max(alike.shape[1], 1) ** 0.5
    cosines = np.cos(alike @ directions + rng.uniform(0.0, 2.0 * np.pi, NUM_FEATURES))
    return np.concatenate([np.ones((len(alike), 1)), alike, cosines], axis=1)


def scaled(numbers: Array) -> Array:
    """[R, ...]: the varied numbers, less their means and by their deviations."""
    varied = numbers[:, np.ptp(numbers, axis=0) > 0]
    return np.asarray((varied - varied.mean(axis=0)) / varied.std(axis=0))


def held_out_errors(features: Array, follows: Array, half: int) -> Array:
    """[R - half, Y]: squared errors on the second part of a ridge regression fitted to the first."""
    fitted, known = features[:half], follows[:half]
    weights = np.linalg.solve(fitted.T @ fitted + RIDGE * np.eye(fitted.shape[1]), fitted.T @ known)
    errors: Array = (features[half:] @ weights - follows[half:]) ** 2
    return errors


USUAL_SHARE = 0.8
"""Share of the steps of a number that are usual; larger ones are jumps."""

MIN_USUAL_ROWS = 300
"""Rows whose steps, now and before, are usual, that a number needs."""

MIN_CORRELATION, MAX_CANDIDATES = 0.3, 3
"""Of the steps of a number now and before, from which a closer look pays, and the most numbers that are looked at."""

ROUNDING = 1e-9


def moving_numbers(steps: Array, steps_before: Array) -> list[tuple[int, NDArray[np.bool_]]]:
    """The numbers whose steps most look like those before, with the rows in which both were usual.

    Args:
      steps, steps_before: [R, D], from here and to here.
    """
    found = []
    for number in range(steps.shape[1]):
        now, before = steps[:, number], steps_before[:, number]
        rows = _usual(now) & _usual(before)
        if rows.sum() < MIN_USUAL_ROWS or min(np.ptp(now[rows]), np.ptp(before[rows])) <= ROUNDING:
            continue
        likeness = abs(float(np.corrcoef(now[rows], before[rows])[0, 1]))
        if likeness >= MIN_CORRELATION:
            found.append((likeness, number, rows))
    return [(number, rows) for _, number, rows in sorted(found, key=lambda one: -one[0])[:MAX_CANDIDATES]]


def _usual(steps: Array) -> NDArray[np.bool_]:
    """bool [R], True where a number [R] made a usual step."""
    sizes = np.abs(steps)
    return np.asarray(sizes <= np.quantile(sizes, USUAL_SHARE) + ROUNDING)

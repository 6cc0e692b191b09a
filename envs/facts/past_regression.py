"""Tells from random play whether a lone seat must remember, where numbers hardly ever come twice: by regression.

What follows a decision is predicted from what is seen and done, and once more with what was seen before. Where
positions are seen and speeds are not, the second prediction is far better on rows that it was not fitted to.

Shape letters: N games, R rows, D numbers of an observation, F features, Y predicted numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs.protocol import EnvSpec, Turn

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


class PastRegression:
    """Collects the decisions of games of one seat; call `decided` and `stepped` in turn for every step.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._actions = spec.actions
        numbered = spec.actions.kind == "categorical"
        self._looks = has_few_numbers(spec) and (not numbered or spec.actions.num_actions <= MAX_ACTIONS)
        self._rows: list[tuple[Array, Array, Array, float, bool]] = []
        self.restart(num_envs=0)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._first: list[Array | None] = [None] * num_envs
        self._before: list[Array | None] = [None] * num_envs
        self._now: dict[int, tuple[Array, Array]] = {}

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        self._now = {}
        if not self._looks or len(self._rows) >= MAX_ROWS:
            return
        seen, done = numbers_of(turn), self._action_numbers(actions)
        for slot, game in enumerate(turn.env_index.tolist()):
            if self._first[game] is None:
                self._first[game] = seen[slot]
            self._now[game] = seen[slot], np.concatenate([seen[slot], done[slot]])

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to. What a time limit or a failure ends has no outcome."""
        if not self._now:
            return
        after, slots = numbers_of(turn), {game: slot for slot, game in enumerate(turn.env_index.tolist())}
        cut_off = turn.truncated if turn.aborted is None else turn.truncated | turn.aborted
        for game, (seen, decision) in self._now.items():
            first, before, has_ended = self._first[game], self._before[game], bool(turn.terminated[game])
            assert first is not None
            if before is not None and not cut_off[game] and (has_ended or game in slots):
                change = np.zeros_like(seen) if has_ended else after[slots[game]] - seen
                past = np.concatenate([before, first])
                self._rows.append((decision, past, change, float(turn.rewards[game, 0]), has_ended))
            self._before[game] = decision
            if has_ended or cut_off[game]:
                self._first[game] = self._before[game] = None

    @property
    def past_counts(self) -> bool:
        """True if the step before or the start of an episode tells what the observation does not."""
        if len(self._rows) < MIN_ROWS:
            return False
        decisions, pasts, changes, rewards, ends = (
            np.array(column, np.float64) for column in zip(*self._rows, strict=True)
        )
        size = changes.shape[1]
        if len(np.unique(decisions[:, :size], axis=0)) < (1.0 - MAX_REPEATED) * len(decisions):
            return False
        results, going = np.stack([rewards, ends], axis=1), ends == 0.0
        return any(
            tells_more(decisions, past, results) or tells_more(decisions[going], past[going], changes[going])
            for past in (pasts[:, :-size], pasts[:, -size:])
        )

    def _action_numbers(self, actions: NDArray[np.generic]) -> Array:
        """float64 [N, ...]: numbered actions one-hot, others as they are."""
        if self._actions.kind == "categorical":
            return np.eye(self._actions.num_actions)[actions.astype(np.int64)]
        return actions.astype(np.float64).reshape(len(actions), -1)


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
    varied = numbers[:, np.ptp(numbers, axis=0) > 0]
    scaled = (varied - varied.mean(axis=0)) / varied.std(axis=0)
    directions = rng.normal(size=(scaled.shape[1], NUM_FEATURES)) / max(scaled.shape[1], 1) ** 0.5
    cosines = np.cos(scaled @ directions + rng.uniform(0.0, 2.0 * np.pi, NUM_FEATURES))
    return np.concatenate([np.ones((len(scaled), 1)), scaled, cosines], axis=1)


def held_out_errors(features: Array, follows: Array, half: int) -> Array:
    """[R - half, Y]: squared errors on the second part of a ridge regression fitted to the first."""
    fitted, known = features[:half], follows[:half]
    weights = np.linalg.solve(fitted.T @ fitted + RIDGE * np.eye(fitted.shape[1]), fitted.T @ known)
    errors: Array = (features[half:] @ weights - follows[half:]) ** 2
    return errors

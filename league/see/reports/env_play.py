"""Measures a game under random play: speed by the number of games, lengths, returns of each seat, observed ranges.

Shape letters: N games, S seats.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import INTERVAL_Z
from league.envs import calls
from league.envs.adapters.bare import bare_rate
from league.envs.bots import RandomBot
from league.envs.facts.clocks import CLOCKS, Clock, Clocks
from league.envs.protocol import BatchedEnv, EnvConfig, EnvSpec, Turn
from league.envs.registry import make
from league.envs.text.number_text import number_text

BATCHES = (1, 4, 16, 64, 256)
"""Numbers of games whose speed is measured, as far as time allows."""

MAX_MAKING = 0.5
"""Fraction of the time left that making more games may be expected to take."""

MAX_WALL = 5.0
"""Wall time of the measures, as a multiple of their seconds: a game may sleep in some calls only, such as resets."""

TRIAL_STEPS = 5
"""Steps that show whether a game sleeps or computes."""


@dataclass(frozen=True)
class SeatReturn:
    """Mean return of a seat under random play, with its 95 % interval."""

    seat: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Speed:
    """Decisions a core-second that `step` takes with so many games at once."""

    num_envs: int
    decisions_per_core_s: float


@dataclass(frozen=True)
class Measures:
    """Results of random play.

    Fields:
      speeds: for each number of games. bare: the rate of the bare env, None if it has none.
      episodes: number that ended; where 0, lengths and returns are empty.
      lengths: least, mean and greatest number of turns. returns: least and greatest of any seat.
      seats: their returns.
      observations: name of the field -> least and greatest number.
    """

    speeds: tuple[Speed, ...]
    bare: float | None
    episodes: int
    lengths: tuple[float, ...]
    returns: tuple[float, ...]
    seats: tuple[SeatReturn, ...]
    observations: Mapping[str, tuple[float, float]]

    @property
    def share(self) -> float | None:
        """Best rate as a fraction of the bare env's; None if that is unknown."""
        rates = [speed.decisions_per_core_s for speed in self.speeds]
        return max(rates) / self.bare if self.bare and rates else None

    def lines(self) -> Iterator[str]:
        rates = ", ".join(f"{speed.decisions_per_core_s:,.0f} with {speed.num_envs}" for speed in self.speeds)
        games = "game" if [speed.num_envs for speed in self.speeds] == [1] else "games"
        yield f"speed: {rates} {games}, decisions a core-second"
        if self.bare is not None and self.share is not None:
            yield f"bare env: {self.bare:,.0f} decisions a core-second, the best of the above is {self.share:.2f} of it"
        if self.episodes:
            low, mean, high = self.lengths
            yield (
                f"episode lengths: {low:,.0f} to {high:,.0f} turns, {mean:,.1f} on average of the {self.episodes:,} "
                "episodes in which the speed was measured"
            )
            yield f"observed returns: {number_text(self.returns[0], 6)} to {number_text(self.returns[1], 6)}"
            yield f"returns by seat: {', '.join(_seat_text(seat) for seat in self.seats)}{self._bias()}"
        ranges = (
            f"{name} {number_text(low, 6)} to {number_text(high, 6)}" for name, (low, high) in self.observations.items()
        )
        yield f"observed ranges: {', '.join(ranges)}"

    def _bias(self) -> str:
        """Text on two seats whose intervals lie apart, or do so even at twice their widths; empty for one seat."""
        if len(self.seats) < 2:
            return ""
        for width, text in (
            (2, "the seats are not equal, play from all of them"),
            (1, "the seats may differ a little, which more --seconds would show"),
        ):
            lows = (seat.mean + width * (seat.low - seat.mean) for seat in self.seats)
            if max(lows) > min(seat.mean + width * (seat.high - seat.mean) for seat in self.seats):
                return f"; {text}"
        return "; no bias seen"


@dataclass
class _Seen:
    """Lengths, returns and ranges seen so far."""

    spec: EnvSpec
    lengths: list[int] = field(default_factory=list)
    returns: list[NDArray[np.float32]] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, turn: Turn, lengths: NDArray[np.int64]) -> None:
        """Take in a turn; lengths: int64 [N], steps of each game's present episode before the turn."""
        ended = np.flatnonzero(turn.ended)
        self.lengths += lengths[ended].tolist()
        self.returns += list(turn.returns[ended])
        for name, array in turn.obs.items():
            low, high = self.ranges.get(name, (np.inf, -np.inf))
            self.ranges[name] = (min(low, float(array.min())), max(high, float(array.max())))


def measure(config: EnvConfig, *, seconds: float, seed: int = 0, clocks: Clocks = CLOCKS) -> Measures:
    """Play at random with more and more games at once, a fifth of the time each, then step the bare env.

    Args:
      seconds: of processor time, making the games not counted; of the wall for a game that sleeps or works elsewhere.
    Raises:
      EnvError: the env cannot be made, or raised.
    """
    speeds: list[Speed] = []
    part, bare, seen, reset_s = seconds / (len(BATCHES) + 1), None, None, 0.0
    left, make_s, clock = seconds, 0.0, clocks.processor
    end = clocks.wall() + MAX_WALL * seconds

    def is_late() -> bool:
        return clocks.wall() > end

    for num_envs in BATCHES:
        if num_envs * make_s > MAX_MAKING * left or (speeds and num_envs * reset_s > end - clocks.wall()):
            break
        making = clocks.now()
        with calls.going_on(config.id, "the making of it"):
            env = make(config, num_envs=num_envs)
        took_s = clocks.cost_since(making)
        make_s, left = max(took_s / num_envs, make_s if num_envs > 4 else 0.0), left - took_s
        with contextlib.closing(env):
            if seen is None:
                seen, clock = _Seen(env.spec), _suitable(clocks, env, seed=seed)
            began, resetting = clock(), clocks.wall()
            turn = calls.reset(env, seed)
            reset_s = (clocks.wall() - resetting) / num_envs
            rate = _play(env, turn, seen, seed=seed, clock=clock, stop=clock() + part, is_late=is_late)
            speeds.append(Speed(num_envs, rate))
            if num_envs == 1:
                with calls.going_on(config.id, "a loop of its own"):
                    bare = bare_rate(env, seconds=part / 2, clock=clock)
            left -= clock() - began
    assert seen is not None
    return _summary(seen, tuple(speeds), bare)


def _suitable(clocks: Clocks, env: BatchedEnv, *, seed: int) -> Clock:
    """The wall's clock for a game whose reset or steps sleep or work elsewhere, else that of the processor."""
    resetting = clocks.now()
    bot, turn = RandomBot(seed=seed), calls.reset(env, seed)
    sleeps, began = clocks.waited_since(resetting), clocks.now()
    for _ in range(TRIAL_STEPS):
        turn = calls.step(env, bot.act(env, turn, np.arange(turn.env_index.size)))
    return clocks.wall if sleeps or clocks.waited_since(began, calls=TRIAL_STEPS) else clocks.processor


def _play(
    env: BatchedEnv, turn: Turn, seen: _Seen, *, seed: int, clock: Clock, stop: float, is_late: Callable[[], bool]
) -> float:
    """Decisions a second of `step` until a time; the choice of actions and the statistics are not counted."""
    bot, lengths = RandomBot(seed=seed), np.zeros(env.num_envs, np.int64)
    decisions, stepping = 0, 0.0
    while not decisions or (clock() < stop and not is_late()):
        actions = bot.act(env, turn, np.arange(turn.env_index.size))
        began = clock()
        turn = calls.step(env, actions)
        stepping += clock() - began
        decisions += len(actions)
        lengths += 1
        seen.add(turn, lengths)
        lengths[turn.ended] = 0
    return decisions / max(stepping, 1e-9)


def _summary(seen: _Seen, speeds: tuple[Speed, ...], bare: float | None) -> Measures:
    names = seen.spec.seat_names or tuple(f"seat_{seat}" for seat in range(seen.spec.num_seats))
    returns = np.array(seen.returns, np.float64).reshape(len(seen.returns), seen.spec.num_seats)
    lengths: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()
    seats: tuple[SeatReturn, ...] = ()
    if seen.lengths:
        counted = np.array(seen.lengths)
        lengths = (float(counted.min()), float(counted.mean()), float(counted.max()))
        ends = (float(returns.min()), float(returns.max()))
        margin = INTERVAL_Z * returns.std(axis=0) / len(returns) ** 0.5
        means = returns.mean(axis=0)
        seats = tuple(
            SeatReturn(name, float(mean), float(mean - around), float(mean + around))
            for name, mean, around in zip(names, means, margin, strict=True)
        )
    return Measures(speeds, bare, len(seen.lengths), lengths, ends, seats, seen.ranges)


def _seat_text(seat: SeatReturn) -> str:
    mean, low, high = (number_text(value, sign=True) for value in (seat.mean, seat.low, seat.high))
    return f"{seat.seat} {mean} ({low} to {high})"

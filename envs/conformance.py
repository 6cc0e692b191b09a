"""Checks an env against the contract of `league.envs.protocol` by random play, and says how to mend what is broken.

Shape letters: N games, S seats, K slots, A actions.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.envs import calls
from league.envs.bots import Copyable, RandomBot
from league.envs.protocol import (
    MAX_REWARD,
    OBSERVATION_DTYPES,
    BatchedEnv,
    EnvConfig,
    EnvError,
    EnvSpec,
    ForkableEnv,
    Turn,
)
from league.envs.registry import make
from league.envs.return_range import check_returns, returns_text
from league.envs.spec_facts import env_facts
from league.envs.sub_actions import illegal_answer
from league.envs.text.number_text import number_text

STEPS = 200  # turns that a check plays by default
OTHER_STEPS, MIN_STEPS = 20, 20  # turns of another seed before games are repeated; least turns of a slow env
MAX_KEPT_BYTES = 1 << 28  # of observations, which are compared later; with large images fewer turns are played


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Fields:
      kind: "fault" (the contract is broken) or "fact".
      rule: the rule that was checked, or the name of the fact.
      text: a sentence; for a fault also the remedy.
    """

    kind: str
    rule: str
    text: str


def check_env(
    config: EnvConfig,
    *,
    num_envs: int = 4,
    steps: int = STEPS,
    seed: int = 0,
    limit_s: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> list[Finding]:
    """Play `num_envs` games of `config` for `steps` turns at random; of a slow env those of `limit_s` seconds.

    Returns: the faults, at most one per rule, then the facts. An env without faults can be trained on.
    """
    try:
        with calls.going_on(config.id, "the making of it"):
            env = make(config, num_envs=num_envs)
    except EnvError as error:
        return [Finding("fault", "it can be made", str(error))]
    check = Check(env.spec)
    try:
        until = clock() + limit_s
        first = _record(env, steps=steps, seed=seed, check=check, is_late=lambda: clock() > until)
        _repeat(config, first, num_envs=num_envs, seed=seed, check=check)
        _refuse(env, check, seed=seed)
        _copy(env, check, seed=seed)
    except EnvError as error:
        check.fault("it does not raise", f"{error}; mend the env, or catch what it raises inside of it")
    finally:
        env.close()
        env.close()
    return [*check.faults.values(), *_facts(env, check)]


@dataclass
class Check:
    """The findings of one check and the counts it made on the way. copies: the result of trying to copy games."""

    spec: EnvSpec
    faults: dict[str, Finding] = field(default_factory=dict)
    num_steps: int = 0
    lengths: list[int] = field(default_factory=list)
    returns: list[NDArray[np.float32]] = field(default_factory=list)
    num_truncated: int = 0
    copies: str = ""

    def fault(self, rule: str, text: str) -> None:
        """Report a broken rule; only the first report of each rule is kept."""
        self.faults.setdefault(rule, Finding("fault", rule, text))


def check_turn(spec: EnvSpec, turn: Turn, *, num_envs: int) -> Iterator[tuple[str, str]]:
    """Yields (rule, sentence) for every fault of one turn."""
    slots = turn.env_index.shape
    if turn.env_index.dtype != np.int64 or turn.seat.dtype != np.int64 or turn.seat.shape != slots:
        yield (
            "slots are int64 [K]",
            f"env_index is {turn.env_index.dtype} {slots}, seat {turn.seat.dtype} {turn.seat.shape}",
        )
        return
    key = turn.env_index * spec.num_seats + turn.seat
    if not (np.diff(key) > 0).all():
        yield "slots are sorted", "slots must come once each, sorted by (env_index, seat)"
    if ((turn.seat < 0) | (turn.seat >= spec.num_seats)).any():
        yield "seats exist", f"a slot names a seat outside [0, {spec.num_seats})"
    idle = np.setdiff1d(np.arange(num_envs), turn.env_index)
    if idle.size:
        yield "every game has a slot", f"game {idle[0]} has nobody to act; restart ended games in the same step"
    yield from _check_obs(spec, turn.obs, turn.env_index.size, what="obs")
    yield from _check_mask(spec, turn)
    per_seat, per_env = (num_envs, spec.num_seats), (num_envs,)
    for name, array, shape, dtype in (
        ("rewards", turn.rewards, per_seat, np.float32),
        ("returns", turn.returns, per_seat, np.float32),
        ("terminated", turn.terminated, per_env, np.bool_),
        ("truncated", turn.truncated, per_env, np.bool_),
    ):
        if array.shape != shape or array.dtype != dtype:
            yield f"{name} fits", f"{name} is {array.dtype} {array.shape}, expected {np.dtype(dtype).name} {shape}"
            return
    for name, values, largest in (("rewards", turn.rewards, MAX_REWARD), ("returns", turn.returns, math.inf)):
        if not np.isfinite(values).all():
            game, seat = np.argwhere(~np.isfinite(values))[0]
            yield f"{name} are finite", f"{name}[{game}, {seat}] is {values[game, seat]}; give a finite number"
        elif np.abs(values).max(initial=0.0) > largest:
            yield f"{name} are bounded", f"one of the {name} is beyond {number_text(largest, 9)}; divide all of them"
    if (turn.terminated & turn.truncated).any():
        yield "terminated or truncated", "an episode is both; one that ended by the rules is terminated only"
    if turn.returns[~turn.ended].any():
        yield "returns only at the end", "returns must be 0 in games that have not ended"
    yield from _check_final(spec, turn)


def _check_obs(
    spec: EnvSpec, obs: Mapping[str, NDArray[np.generic]], rows: int, *, what: str
) -> Iterator[tuple[str, str]]:
    if set(obs) != set(spec.observations):
        yield f"{what} has the fields of the spec", f"{what} has {sorted(obs)}, the spec {sorted(spec.observations)}"
        return
    for name, array_spec in spec.observations.items():
        array, shape = obs[name], (rows, *array_spec.shape)
        if array_spec.dtype not in OBSERVATION_DTYPES:
            known = ", ".join(sorted(OBSERVATION_DTYPES))
            yield "fields have a dtype that travels", f"{name!r} is {array_spec.dtype} in the spec; use one of {known}"
        if array.shape != shape or array.dtype != array_spec.dtype:
            yield (
                f"{what} fits the spec",
                f"{name!r} is {array.dtype} {array.shape}, expected {array_spec.dtype} {shape}; return that",
            )
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            index = tuple(int(number) for number in np.argwhere(~np.isfinite(array))[0])
            yield f"{what} is finite", f"{name!r} is {array[index]} at {list(index)}; give finite numbers"


def _check_mask(spec: EnvSpec, turn: Turn) -> Iterator[tuple[str, str]]:
    mask, shape = turn.action_mask, (turn.env_index.size, spec.actions.num_actions)
    if (mask is not None) != spec.has_mask:
        yield "a mask where the spec says so", f"has_mask is {spec.has_mask}, the mask is {type(mask).__name__}"
    elif mask is not None:
        if mask.dtype != np.bool_ or mask.shape != shape:
            yield "the mask fits", f"action_mask is {mask.dtype} {mask.shape}, expected bool {shape}"
        elif not mask.any(axis=1).all():
            yield "every slot can act", f"slot {int((~mask.any(axis=1)).argmax())} has no legal action; give it one"


def _check_final(spec: EnvSpec, turn: Turn) -> Iterator[tuple[str, str]]:
    cut = np.flatnonzero(turn.truncated)
    rejoined = [] if turn.rejoined is None else [(int(game), int(seat)) for game, seat in np.argwhere(turn.rejoined)]
    acting = set(zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True))
    if not set(rejoined) <= acting:
        yield "seats that rejoin act", f"{rejoined} rejoin, but only {sorted(acting)} act"
    if turn.final is None:
        if cut.size:
            yield "last observations of truncated episodes", f"game {cut[0]} was truncated, final is None; give it"
        return
    wanted = {(int(game), seat) for game in cut for seat in range(spec.num_seats)}
    given = list(zip(turn.final.env_index.tolist(), turn.final.seat.tolist(), strict=True))
    ends = set(given) - set(rejoined)
    if not ends <= wanted or len(given) != len(set(given)) or {game for game, _ in ends} != set(cut.tolist()):
        yield (
            "last observations of truncated episodes",
            f"final has the slots {given}, expected some of {sorted(wanted)}",
        )
    yield from _check_obs(spec, turn.final.obs, len(given), what="final")


@dataclass(frozen=True)
class Played:
    """A recorded game: the turn before each step and its actions, and the last turn."""

    turns: list[Turn]
    actions: list[NDArray[np.generic]]


def _record(env: BatchedEnv, *, steps: int, seed: int, check: Check, is_late: Callable[[], bool]) -> Played:
    """Play at random, checking every turn and that rewards add up to returns; until it is late, once it is enough."""
    spec, bot = env.spec, RandomBot(seed=seed)
    turns, actions = [_kept(calls.reset(env, seed))], []
    collected = np.zeros((env.num_envs, spec.num_seats))
    lengths = np.zeros(env.num_envs, np.int64)
    turn_bytes = max(sum(array.nbytes for array in turns[0].obs.values()), 1)
    steps = max(min(steps, MAX_KEPT_BYTES // turn_bytes), 2)
    for step in range(steps + 1):
        turn = turns[-1]
        for rule, text in check_turn(spec, turn, num_envs=env.num_envs):
            check.fault(rule, f"{text} (turn {step})")
        if any(rule.endswith((" fits", " exist", "int64 [K]", "of the spec")) for rule in check.faults):
            break  # what follows would only trip over the same
        ended = turn.ended
        collected[ended] += turn.rewards[ended]
        wrong = ended[:, None] & ~np.isclose(collected, turn.returns, rtol=1e-4, atol=1e-4)
        if wrong.any():
            game, seat = np.argwhere(wrong)[0]
            check.fault(
                "rewards add up to returns",
                f"seat {seat} of game {game} collected {number_text(float(collected[game, seat]), 6)} over its turns, "
                f"returns says {number_text(float(turn.returns[game, seat]), 6)}; what a seat earns while it waits "
                "must wait for its next turn",
            )
        for game in np.flatnonzero(ended):
            check.lengths.append(int(lengths[game]))
            check.returns.append(turn.returns[game])
            check.num_truncated += bool(turn.truncated[game])
            if spec.max_turns is not None and lengths[game] > spec.max_turns:
                check.fault("max_turns holds", f"an episode took {lengths[game]} turns, max_turns is {spec.max_turns}")
            for rule, text in check_returns(spec, turn.returns[game]):
                check.fault(rule, text)
        collected[ended] = 0
        lengths[ended] = 0
        going = ~ended[turn.env_index]
        collected[turn.env_index[going], turn.seat[going]] += turn.rewards[turn.env_index[going], turn.seat[going]]
        if step == steps or (step >= MIN_STEPS and is_late()):
            break
        actions.append(bot.act(env, turn, np.arange(turn.env_index.size)))
        check.num_steps += 1
        lengths += 1
        turn = calls.step(env, actions[-1])
        turns.append(_kept(turn))
    return Played(turns, actions)


def _repeat(config: EnvConfig, first: Played, *, num_envs: int, seed: int, check: Check) -> None:
    """Check that the same seed and actions give the same games, also after others and when copies are made on the way.

    An env that ignores its seed would repeat its games as well if it were only made again.
    """
    env, bot = make(config, num_envs=num_envs), RandomBot(seed=seed + 1)
    try:
        turn = calls.reset(env, seed + 1)
        for _ in range(min(len(first.actions), OTHER_STEPS)):
            turn = calls.step(env, bot.act(env, turn, np.arange(turn.env_index.size)))
        turn = calls.reset(env, seed)
        for step, (expected, actions) in enumerate(zip(first.turns, first.actions, strict=False)):
            difference = differs(expected, turn)
            if difference:
                check.fault(
                    "the same seed gives the same games",
                    f"{difference} differs after {step} steps of the same seed and actions; draw all randomness from"
                    " the seed given to reset",
                )
                return
            turn = calls.step(env, actions)
            if step == len(first.actions) // 2 and isinstance(env, Copyable):
                _try_copy(env, check, seed=seed)
    finally:
        env.close()


def _refuse(env: BatchedEnv, check: Check, *, seed: int) -> None:
    """Check that an illegal action raises an `EnvError`."""
    turn, spec = calls.reset(env, seed), env.spec
    legal = RandomBot(seed=seed).act(env, turn, np.arange(turn.env_index.size))
    bad = legal.copy()
    if spec.actions.kind == "box":
        bad[0] = spec.actions.high + 1
    else:
        mask = None if turn.action_mask is None else turn.action_mask[:1]
        bad[0] = illegal_answer(spec.actions, mask=mask)
    for actions, what in ((bad, f"the illegal action {bad[0]}"), (legal[:-1], "too few actions")):
        try:
            calls.step(env, actions)
        except EnvError:
            continue
        check.fault("illegal actions are refused", f"{what} was taken; raise EnvError naming the legal ones")
        calls.reset(env, seed)


def _copy(env: BatchedEnv, check: Check, *, seed: int) -> None:
    """Check that copies equal the originals and that a restored env continues as the saved one would have."""
    bot = RandomBot(seed=seed)
    turn = calls.reset(env, seed)
    for _ in range(3):
        turn = calls.step(env, bot.act(env, turn, np.arange(turn.env_index.size)))
    turn = _kept(turn)
    if not isinstance(env, Copyable):
        check.copies = "games cannot be copied"
    else:
        shown = _try_copy(env, check, seed=seed)
        difference = "" if shown is None else differs(turn, shown, only=("env_index", "seat", "obs", "action_mask"))
        if difference:
            check.fault("copies show what the originals show", f"{difference} of a copy differs; copy the whole state")
    if isinstance(env, ForkableEnv):
        saved = {name: array.copy() for name, array in env.save().items()}
        runs = []
        for _ in range(2):
            again, bot = env.load(saved), RandomBot(seed=seed + 1)
            run = [_kept(again)]
            for _ in range(30):
                run.append(_kept(calls.step(env, bot.act(env, run[-1], np.arange(run[-1].env_index.size)))))
            runs.append(run)
        for step, (one, two) in enumerate(zip(*runs, strict=True)):
            difference = differs(one, two)
            if difference:
                rule = "saved games continue"
                check.fault(rule, f"{difference} differs {step} steps after load; save the whole state")
                break


def _try_copy(env: BatchedEnv, check: Check, *, seed: int) -> Turn | None:
    """Copy all games and step the copies once; returns the copies' first turn, None if they cannot be copied."""
    games = np.arange(env.num_envs)
    assert isinstance(env, Copyable)
    try:
        forked, turn = env.fork(games)
    except EnvError as error:
        check.copies = str(error)
        if isinstance(env, ForkableEnv):
            check.fault("games can be copied", f"{error}; or do not offer fork")
        return None
    with contextlib.closing(forked):
        turn = _kept(turn)
        forked.step(RandomBot(seed=seed).act(forked, turn, np.arange(turn.env_index.size)))
    can = "games can be copied and saved" if isinstance(env, ForkableEnv) else "games can be copied"
    check.copies = check.copies or can
    return turn


def differs(
    one: Turn,
    two: Turn,
    *,
    only: tuple[str, ...] = (
        "env_index",
        "seat",
        "obs",
        "action_mask",
        "rewards",
        "terminated",
        "truncated",
        "returns",
        "rejoined",
        "final",
    ),
) -> str:
    """The name of the first field in which two turns differ; empty if they are equal."""
    for name in only:
        left, right = getattr(one, name), getattr(two, name)
        if (left is None) != (right is None):
            return name
        if name == "final" and left is not None:
            if not (np.array_equal(left.env_index, right.env_index) and np.array_equal(left.seat, right.seat)):
                return name
            left, right = left.obs, right.obs
        pairs = [(left, right)] if not isinstance(left, Mapping) else [(left[key], right[key]) for key in left]
        if left is not None and not all(np.array_equal(first, second) for first, second in pairs):
            return name
    return ""


def _kept(turn: Turn) -> Turn:
    """The turn with its observations copied, so that the next step does not change them."""
    return Turn(**{**vars(turn), "obs": {name: array.copy() for name, array in turn.obs.items()}})


def _facts(env: BatchedEnv, check: Check) -> Iterator[Finding]:
    spec = env.spec
    yield from (Finding("fact", name, text) for name, text in env_facts(env))
    if check.lengths:
        returns = ", ".join(f"{value:+.2f}" for value in np.mean(check.returns, axis=0))
        lengths = f"{len(check.lengths)} at random, {np.mean(check.lengths):.1f} turns on average"
        episodes = f"{lengths}, {check.num_truncated} truncated, mean returns {returns}"
    else:
        episodes = f"none ended in {check.num_steps} turns; give more, by --steps N"
    yield Finding("fact", "episodes of the check", episodes)
    yield Finding("fact", "returns", returns_text(spec))
    yield Finding("fact", "copies", check.copies or "not tried")

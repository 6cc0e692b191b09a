"""Vector envs of Gymnasium as `BatchedEnv`: all games in one call, restarted in the same step.

Most array envs restart a game one step late (NEXT_STEP): the step after an end ignores the action and shows the new
start. A `BatchedEnv` restarts at once. So a second env of the same kind, only ever reset, keeps starts in stock. One
of them overwrites the rows of an ended game. Before an env is used, play proves that its rows can be exchanged
like that; an env that fails the proof is stepped one by one instead.

Shape letters: N games, K actions of a turn (= N).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from league.envs.adapters.checks.asking import asked, unpacked
from league.envs.adapters.checks.declared_ranges import DeclaredRanges
from league.envs.adapters.checks.masks import MaskMethod, late_mask, mask_name
from league.envs.adapters.outline import Outline, outline_of
from league.envs.adapters.turn_builder import legal_answers
from league.envs.guard.foreign_code import foreign_code
from league.envs.protocol import BatchedEnv, EnvError, FinalObservation, Turn, reward_problem

PROOF_STEPS = 64
STEP_PARTS = "observations, rewards, terminations, truncations, infos"
LOOK_EVERY = 16
"""Steps from one look at what the env does to the process to the next: a step takes little longer than a look."""

Observations = dict[str, NDArray[np.generic]]


def array_env(name: str, *, env_id: str, kwargs: Mapping[str, object], num_envs: int) -> BatchedEnv | None:
    """Make the array env registered as `name`; None if it cannot be used and single envs must replace it."""

    def make_one(count: int) -> Any:
        return gymnasium.make_vec(name, num_envs=count, vectorization_mode="vector_entry_point", **kwargs)

    try:
        env = make_one(num_envs)
    except Exception:  # code of others: single envs replace it, or report the error
        return None
    try:
        return vector_env(env, make_one, env_id=env_id)
    except NotBatchedError:
        return None


class NotBatchedError(EnvError):
    """An array env cannot be used as one batch."""


def vector_env(env: Any, make_one: Callable[[int], Any], *, env_id: str) -> BatchedEnv:
    """A `gymnasium.vector.VectorEnv` of any autoreset mode as a `BatchedEnv`; it is closed where that fails.

    A `SyncVectorEnv` that restarts late is switched to SAME_STEP.

    Args:
      make_one: makes another env of the same kind with so many games.
    Raises:
      NotBatchedError: it has masks or one-hot fields, or restarts late and its games cannot be exchanged.
    """
    if type(env) is SyncVectorEnv and env.autoreset_mode == AutoresetMode.NEXT_STEP:
        env.autoreset_mode = AutoresetMode.SAME_STEP
        env.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
    with contextlib.ExitStack() as opened:
        opened.callback(env.close)
        outline = outline_of(
            env_id,
            ["player"],
            [asked(env_id, "single_observation_space", lambda: env.single_observation_space)],
            [asked(env_id, "single_action_space", lambda: env.single_action_space)],
            shows_mask=lambda: _first_mask(env, env_id=env_id),
        )
        if outline.spec.has_mask:
            raise NotBatchedError(f"{env_id}: masks of a vector env cannot be read; return single envs")
        if any(field.one_hot_at is not None for field in outline.fields):
            raise NotBatchedError(f"{env_id}: a vector env with numbered observations is not read; return single envs")
        if outline.codes[0].parts:
            raise NotBatchedError(
                f"{env_id}: a vector env with Dict or Tuple actions is not stepped; return single envs"
            )
        axes: dict[str, int] | None = None
        if env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP) == AutoresetMode.NEXT_STEP:
            axes = asked(env_id, "first steps", lambda: proven_axes(make_one, outline), advice="")
            if not axes:
                raise NotBatchedError(
                    f"{env_id}: it restarts its games a step late (AutoresetMode.NEXT_STEP), which would train on steps"
                    " that are none; make it with AutoresetMode.SAME_STEP or DISABLED"
                )
        opened.pop_all()  # the caller closes it from here on
        return ArrayEnv(env, outline, make_one=make_one, axes=axes)


class Stock:
    """Starts of games in stock, to be put into rows of an array env."""

    def __init__(self, spare: Any, outline: Outline, axes: Mapping[str, int]) -> None:
        """spare: an env of the same kind that is only reset. axes: attribute -> its axis of games."""
        self._spare = spare
        self._outline = outline
        self.axes = dict(axes)
        self._observations: Observations = {}
        self._used = 0

    def close(self) -> None:
        """Close the env that makes the starts; a second call does nothing."""
        self._spare.close()

    def restock(self, *, seed: int | None = None) -> None:
        """Draw new starts."""
        observations, _ = self._spare.reset(seed=seed)
        self._observations = _fields_of(observations, self._outline)
        self._used = 0

    def put(self, env: Any, rows: NDArray[np.int64]) -> Observations:
        """Restart the games in `rows` of `env`; returns their observations, name -> [len(rows), ...]."""
        if self._used + rows.size > self._spare.num_envs:
            self.restock()
        fresh = np.arange(self._used, self._used + rows.size)
        self._used += rows.size
        for name, axis in self.axes.items():
            place = (slice(None),) * axis
            getattr(env, name)[(*place, rows)] = getattr(self._spare, name)[(*place, fresh)]
        return {name: values[fresh] for name, values in self._observations.items()}


class ArrayEnv:
    """N games in one array env."""

    def __init__(
        self, env: Any, outline: Outline, *, make_one: Callable[[int], Any], axes: Mapping[str, int] | None
    ) -> None:
        """axes: proven attribute -> axis of games, for an env that restarts its games a step late; else None."""
        self.spec = outline.spec
        self.num_envs = int(env.num_envs)
        self._env = env
        self._outline = outline
        self._ranges = DeclaredRanges(outline.spec.env_id, outline.bounds)
        self._make_one = make_one
        self._stock = None if axes is None else Stock(make_one(self.num_envs + 1), outline, axes)
        self._seed = 0
        self._steps = 0
        self._earned = np.zeros(self.num_envs, np.float64)
        self._observations: Observations = {}
        self._env_index = np.arange(self.num_envs, dtype=np.int64)
        self._seat = np.zeros(self.num_envs, np.int64)

    def reset(self, seed: int) -> Turn:
        """Restart every game."""
        self._seed, self._steps = seed, 0
        self._earned[:] = 0
        own, spare = (int(word) >> 1 for word in np.random.SeedSequence(seed).generate_state(2))
        begun = self._call("reset", lambda: self._env.reset(seed=own))
        observations, infos = unpacked(self.spec.env_id, "reset", begun, "observations, infos")
        self._refuse_masks(infos)
        if self._stock is not None:
            self._stock.restock(seed=spare)
        return self._turn(_fields_of(observations, self._outline))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        chosen = legal_answers(actions, self.spec, env_index=self._env_index, seat=self._seat, mask=None)
        code = self._outline.codes[0]
        answers = chosen + code.start if code.spec.kind == "categorical" else code.decode(chosen)
        self._steps += 1
        stepped = self._call("step", lambda: self._env.step(answers))
        observations, given, ends, cuts, infos = unpacked(self.spec.env_id, "step", stepped, STEP_PARTS)
        self._refuse_masks(infos)
        fields = _fields_of(observations, self._outline)
        # Copies: an env may hand out arrays of its own, which it clears when a game restarts.
        rewards, terminated, cut = np.array(given, np.float64), np.array(ends, np.bool_), np.array(cuts, np.bool_)
        truncated = cut & ~terminated
        ended = terminated | cut
        self._earned += rewards
        returns, final = np.zeros((self.num_envs, 1), np.float32), None
        if ended.any():
            rows = np.flatnonzero(ended)
            returns[rows, 0] = self._earned[rows]
            self._earned[rows] = 0
            if truncated.any():
                final = self._final(np.flatnonzero(truncated), fields, infos)
            fields = self._restart(rows, fields)
        return self._turn(
            fields,
            rewards=rewards.astype(np.float32)[:, None],
            terminated=terminated,
            truncated=truncated,
            returns=returns,
            final=final,
        )

    def close(self) -> None:
        """Close the env and its stock; a second call does nothing."""
        with foreign_code(self.spec.env_id, "close"):
            self._env.close()
            if self._stock is not None:
                self._stock.close()

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        """Copy the games at `env_indices`.

        Raises:
          EnvError: the arrays that hold the games of this env could not be found.
        """
        if self._stock is None:
            raise EnvError(f"{self.spec.env_id}: the games of this array env cannot be copied")
        axes = self._stock.axes
        forked = ArrayEnv(self._make_one(len(env_indices)), self._outline, make_one=self._make_one, axes=axes)
        forked.reset(self._seed + 1)
        for name, axis in axes.items():
            setattr(forked._env, name, getattr(self._env, name).take(env_indices, axis=axis))
        forked._earned = self._earned[env_indices]
        return forked, forked._turn({name: values[env_indices] for name, values in self._observations.items()})

    def _restart(self, rows: NDArray[np.int64], fields: Observations) -> Observations:
        mode = self._env.metadata.get("autoreset_mode")
        if self._stock is not None:
            fresh = self._stock.put(self._env, rows)
            fields = {name: values.copy() for name, values in fields.items()}
            for name, values in fresh.items():
                fields[name][rows] = values
        elif mode == AutoresetMode.DISABLED:
            which = np.zeros(self.num_envs, np.bool_)
            which[rows] = True
            observations, _ = self._call("reset", lambda: self._env.reset(options={"reset_mask": which}))
            fields = _fields_of(observations, self._outline)
        return fields

    def _final(self, rows: NDArray[np.int64], fields: Observations, infos: Mapping[str, Any]) -> FinalObservation:
        if self._env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
            last = [infos["final_obs"][row] for row in rows]
            obs = {
                field.name: np.stack([field.value(one) for one in last]).astype(field.spec.dtype)
                for field in self._outline.fields
            }
        else:
            obs = {name: values[rows] for name, values in fields.items()}
        return FinalObservation(env_index=rows, seat=np.zeros(rows.size, np.int64), obs=obs)

    def _turn(
        self,
        fields: Observations,
        *,
        rewards: NDArray[np.float32] | None = None,
        terminated: NDArray[np.bool_] | None = None,
        truncated: NDArray[np.bool_] | None = None,
        returns: NDArray[np.float32] | None = None,
        final: FinalObservation | None = None,
    ) -> Turn:
        rewards = np.zeros((self.num_envs, 1), np.float32) if rewards is None else rewards
        if (problem := reward_problem(rewards)) is not None:
            game, _, text = problem
            raise EnvError(f"{self.spec.env_id}, game {game}: {text} (seed {self._seed}, step {self._steps})")
        for name, values in fields.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                row, *index = (int(number) for number in np.argwhere(~np.isfinite(values))[0])
                raise EnvError(
                    f"{self.spec.env_id}, game {row}: {name!r} is {values[(row, *index)]} at {index}; it must be finite"
                    f" (seed {self._seed}, step {self._steps})"
                )
        self._ranges.look(fields, self._seat)
        self._observations = fields
        return Turn(
            env_index=self._env_index,
            seat=self._seat,
            obs=fields,
            action_mask=None,
            rewards=rewards,
            terminated=np.zeros(self.num_envs, np.bool_) if terminated is None else terminated,
            truncated=np.zeros(self.num_envs, np.bool_) if truncated is None else truncated,
            returns=np.zeros((self.num_envs, 1), np.float32) if returns is None else returns,
            final=final,
        )

    def _refuse_masks(self, infos: Any) -> None:
        """Refuse masks that the first reset did not show: nobody here reads them."""
        if name := mask_name(None, infos):
            raise late_mask(self.spec.env_id, "", name, acts_in_box=self.spec.actions.kind == "box")

    def _call(self, name: str, call: Callable[[], Any]) -> Any:
        try:
            if self._steps % LOOK_EVERY:
                return call()
            with foreign_code(self.spec.env_id, name):
                return call()
        except Exception as error:  # code of others: whatever it raises is their env's error, not ours
            raise EnvError(
                f"{self.spec.env_id}: {name} raised {type(error).__name__}: {error} (seed {self._seed}, step"
                f" {self._steps})"
            ) from error


def _first_mask(env: Any, *, env_id: str) -> str:
    """The name of a mask that a vector env or its first game gives; empty where there is none.

    Raises:
      EnvError: its first reset raised.
    """
    for one in (env, *getattr(env, "envs", ())[:1]):
        method = asked(env_id, "action_masks", partial(MaskMethod.of, one, has_agents=False))
        if method is not None:
            return f"{method.name}()"
    begun = asked(env_id, "first reset", lambda: env.reset(seed=0), advice="")
    return mask_name(None, unpacked(env_id, "reset", begun, "observations, infos")[1])


def proven_axes(make_one: Callable[[int], Any], outline: Outline) -> dict[str, int]:
    """Attribute -> axis of games for this kind of env; empty if a game holds state outside its rows of the arrays."""
    rows = 9
    with contextlib.ExitStack() as opened:
        played, untouched, spare = (
            opened.enter_context(contextlib.closing(make_one(count))) for count in (rows, rows, rows + 2)
        )
        played.reset(seed=0)
        untouched.reset(seed=0)
        axes = _axes_of_games(played, spare.reset(seed=1) and spare)
        return axes if axes and _rows_can_be_exchanged(played, untouched, spare, outline, axes) else {}


def _rows_can_be_exchanged(played: Any, untouched: Any, spare: Any, outline: Outline, axes: Mapping[str, int]) -> bool:
    """True if games put into rows of `played` continue as in `spare`, and all others as in `untouched`."""
    rows = int(played.num_envs)
    stock = Stock(spare, outline, axes)
    stock.restock(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(PROOF_STEPS):  # far enough that a game ends
        actions = _random_actions(outline, rows, rng)
        ended = np.logical_or(*played.step(actions)[2:4])
        untouched.step(actions)
        if ended.any():
            break
    # Exchange one ended game, if any, and one in progress; the rest must not change. Others that ended in the same
    # step are left out: they start from the env's own stream, which by then differs in `untouched`.
    taken = np.array(sorted({int(ended.argmax()), int(ended.argmin())}))
    kept = np.setdiff1d(np.flatnonzero(~ended), taken)
    stock.put(played, taken)
    for _ in range(PROOF_STEPS):
        actions, spare_actions = _random_actions(outline, rows, rng), _random_actions(outline, rows + 2, rng)
        spare_actions[: taken.size] = actions[taken]
        results = [env.step(act) for env, act in ((played, actions), (untouched, actions), (spare, spare_actions))]
        for now, before, fresh in zip(*(_rows_of(result, outline) for result in results), strict=True):
            if not (np.array_equal(now[kept], before[kept]) and np.array_equal(now[taken], fresh[: taken.size])):
                return False
        if np.logical_or(*results[2][2:4])[: taken.size].any() or np.logical_or(*results[1][2:4])[kept].any():
            break  # after an end, each env draws from its own stream
    return True


def _axes_of_games(env: Any, other: Any) -> dict[str, int]:
    """Attribute -> axis of games, for every array that both `env` and `other`, with another number of games, hold."""
    axes = {}
    for name, value in vars(env).items():
        against = vars(other).get(name)
        if isinstance(value, np.ndarray) and isinstance(against, np.ndarray) and value.ndim == against.ndim:
            differ = [axis for axis, size in enumerate(value.shape) if size != against.shape[axis]]
            if len(differ) == 1:
                axes[name] = differ[0]
    return axes


def _random_actions(outline: Outline, count: int, rng: np.random.Generator) -> NDArray[np.generic]:
    code = outline.codes[0]
    if code.spec.kind == "categorical":
        return rng.integers(code.spec.num_actions, size=count) + code.start
    if code.starts is not None:
        chosen: NDArray[np.int64] = rng.integers(code.spec.nvec, size=(count, len(code.spec.nvec)))
        return code.decode(chosen)  # type: ignore[no-any-return]
    drawn = rng.uniform(code.spec.low, code.spec.high, (count, *code.spec.shape)).astype(np.float32)
    decoded: NDArray[np.generic] = code.decode(drawn)
    return decoded


def _rows_of(result: tuple[Any, ...], outline: Outline) -> list[NDArray[np.generic]]:
    """The arrays [N, ...] of one step's result: fields, rewards, terminations, truncations."""
    return [*_fields_of(result[0], outline).values(), *(np.asarray(part) for part in result[1:4])]


def _fields_of(observations: Any, outline: Outline) -> Observations:
    """Batched observations as fields of the spec's dtype."""
    return {
        field.name: np.asarray(field.value(observations), field.spec.dtype).reshape(-1, *field.spec.shape)
        for field in outline.fields
    }

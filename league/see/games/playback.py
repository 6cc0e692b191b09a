"""Plays a replay again: verifies it, and shows each state of one of its games."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.config.plugin_names import OutsideName, outside_names
from league.envs.failures import MAX_STRIKES, FailureCount, FaultTolerant
from league.envs.plugins import admit
from league.envs.protocol import BatchedEnv, EnvError, Turn
from league.envs.rendering.drawing import svg_of
from league.envs.rendering.frames import make_shown
from league.envs.rendering.renderer import Scene
from league.judge.recording.replay import Replay, ReplayError, ReplayMismatch
from league.judge.recording.replay_file import read_replay
from league.policies.policy_store import spec_hash
from league.policies.trust import admit_marked, is_trusted, require_trusted
from league.see.games.follower import GameFollower, SeatMove
from league.store.run_folder import RunFolder

TOLERANCE = 1e-5
"""Largest difference of two returns that count as equal: other machines may add in another order."""


@dataclass(frozen=True, eq=False)
class Step:
    """One state of all games of a replay.

    Fields:
      number: steps taken before it.
      env, turn: the games in this state.
      actions: [K, ...] that led to it, for the slots of the turn before; None in the first state.
    """

    number: int
    env: BatchedEnv
    turn: Turn
    actions: NDArray[np.generic] | None


@dataclass(frozen=True)
class Frame:
    """One state of one game, for people. moves: that led to it, empty in the first state. ended: it is the last."""

    number: int
    scene: Scene
    moves: tuple[SeatMove, ...]
    ended: bool

    def svg(self, title: str) -> str:
        """The state as SVG."""
        return svg_of(self.scene.drawing, title=f"{title}, step {self.number}")


def open_replay(file: Path) -> Replay:
    """The replay in a file. Code that it names is admitted where the user trusts it, or it lies in a run of theirs.

    Raises:
      ReplayError: it is no replay.
    """
    replay = read_replay(file)
    admit_marked(RunFolder(file.absolute().parent.parent))  # the run in whose folder `replays` it lies
    if is_trusted(file):
        admit(found.entry for found in names_of_replay(replay))
    return replay


def play_back(replay: Replay) -> Iterator[Step]:
    """Every state of the games, from their start; the ends are compared with the record on the way.

    Raises:
      Untrusted: the replay names code that this user has not trusted.
      ReplayMismatch: the game is another here, or takes another course. EnvError: it cannot be made.
    """
    config = replay.env.config()
    require_trusted(names_of_replay(replay), what="the replay")
    with closing(make_shown(config, num_envs=len(replay.games))) as env:
        if spec_hash(env.spec) != replay.env.spec_hash:
            raise ReplayMismatch(
                f"{config.id} is another game here than the one recorded (seats, observations or actions differ): the "
                f"replay was written by league {replay.league}."
            )
        _leave_out_failed(replay, env)
        yield from _steps(replay, env)


def names_of_replay(replay: Replay) -> list[OutsideName]:
    """The code from outside that a replay names."""
    config = replay.env.config()
    return [*outside_names({"env": {"id": config.id, "kwargs": config.kwargs}})]


def verify_replay(replay: Replay) -> None:
    """Play the games again and compare how each ended.

    Raises:
      See `play_back`.
    """
    for _ in play_back(replay):
        pass


def frames_of(replay: Replay, game: int = 0, *, seat: int | None = None) -> list[Frame]:
    """Every state of one game of a replay, from its start to its end, verified.

    Args:
      seat: in whose place hidden information is shown; None shows everything.
    Raises:
      ReplayError: there is no such game or seat. See also `play_back`.
    """
    if not 0 <= game < len(replay.games):
        raise ReplayError(f"the replay has no game {game}: its games are 0 to {len(replay.games) - 1}.")
    if seat is not None and not 0 <= seat < len(replay.seats):
        raise ReplayError(f"the game has no seat {seat}: its seats are 0 to {len(replay.seats) - 1}.")
    if replay.games[game].aborted:
        raise ReplayError(f"game {game} of the replay was given up before its end: show another one.")
    first, last, frames = replay.games[game].start, replay.games[game].steps, list[Frame]()
    starts = np.concatenate([[0], np.cumsum(replay.slots)]).tolist()
    follower: GameFollower | None = None
    for step in play_back(replay):
        if step.number == first:
            follower = GameFollower(step.env, step.turn, game=game)
            frames.append(Frame(0, follower.scene(seat), (), ended=False))
        elif follower is not None and step.number <= last:  # the other games are compared to their ends too
            assert step.actions is not None
            said = replay.decisions[starts[step.number - 1] : starts[step.number]]
            moves = follower.advance(step.actions, step.env, step.turn, ended=step.number == last, said=said)
            if step.number <= replay.opening:
                moves = tuple(replace(move, is_opening=True) for move in moves)
            frames.append(Frame(step.number - first, follower.scene(seat), moves, ended=step.number == last))
    return frames


def _leave_out_failed(replay: Replay, env: BatchedEnv) -> None:
    """Quarantine the games that are left out, since they may fail here too.

    Raises:
      ReplayError: the env cannot do that.
    """
    left_out = [number for number, game in enumerate(replay.games) if game.is_left_out]
    if not left_out:
        return
    if not isinstance(env, FaultTolerant):
        raise ReplayError(
            f"game {left_out[0]} of the replay failed as it was recorded, and {replay.env.id} cannot play the others"
            " without it."
        )
    strikes = np.zeros(len(replay.games), np.int64)
    strikes[left_out] = MAX_STRIKES
    env.tolerate_failures(FailureCount(len(replay.games), strikes=strikes.data, may_lose_all=True))


def _refuse_failures(env: BatchedEnv) -> None:
    """Raises ReplayMismatch if a game has failed that did not fail as it was recorded."""
    failures = env.take_failures() if isinstance(env, FaultTolerant) else ()
    if failures:
        raise ReplayMismatch(f"the game takes another course here: {failures[0].text()}.")


def _steps(replay: Replay, env: BatchedEnv) -> Iterator[Step]:
    turn = env.reset(replay.seed)
    _refuse_failures(env)
    yield Step(0, env, turn, None)
    for number, actions in enumerate(replay.step_actions(), start=1):
        if len(actions) != len(turn.env_index):
            raise ReplayMismatch(
                f"the game takes another course here: {len(turn.env_index)} seats act in step {number}, and "
                f"{len(actions)} actions were recorded."
            )
        try:
            turn = env.step(actions)
        except EnvError as error:
            raise ReplayMismatch(f"the game takes another course here: step {number} is refused ({error}).") from error
        _refuse_failures(env)
        _compare(replay, number, turn)
        yield Step(number, env, turn, actions)


def _compare(replay: Replay, number: int, turn: Turn) -> None:
    """Compare the games that end in this step, here or in the record.

    Raises:
      ReplayMismatch: one ends here and not there, or otherwise.
    """
    for game, outcome in enumerate(replay.games):
        if outcome.aborted or number > outcome.steps or number < outcome.start:
            continue
        ended = bool(turn.ended[game])
        if number == outcome.start and ended:
            continue
        if ended != (number == outcome.steps):
            when = f"in step {number} here" if ended else f"after step {number} here"
            raise ReplayMismatch(f"game {game} ends {when} and in step {outcome.steps} in the record.")
        if ended:
            returns = turn.returns[game].tolist()
            same = np.allclose(returns, outcome.returns, rtol=TOLERANCE, atol=TOLERANCE)
            if not same or bool(turn.truncated[game]) != outcome.truncated:
                raise ReplayMismatch(
                    f"game {game} ends with returns {returns} here and {list(outcome.returns)} in the record."
                )

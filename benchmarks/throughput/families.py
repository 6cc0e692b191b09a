"""Families of games: speed through our adapters beside the bare env's own, and what a short training learns.

    python -m benchmarks.throughput.families --results DIR --json
    python -m benchmarks.throughput.families --rows classic_leduc,openspiel_leduc --core-seconds 0

`--results` keeps the rows of each family as they come, and a later call skips those. A training that fails is a row of
its family that misses its bound, and the other families follow.

Speed: decisions a core-second at random play in one process. The bare env is one game in a loop of its own kind, with
everything that a user's loop calls; both replay actions that were chosen before. The two take turns; the share is the
median of their ratios.

Learning: a run of `--core-seconds` with the shipped defaults, its newest policy against random play. Beside it stands
what random play itself gets: a score where there is somebody to beat, a return where there is not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.report import Report
from benchmarks.rows import add_row_options, chosen_rows, measure_rows
from benchmarks.strength.run_to_end import RunFailed, run_to_end
from league.agents.acting.policy import BotPolicy, Policy
from league.envs.adapters.bare import bare_rate
from league.envs.bots import RandomBot, make_bot
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy

MIN_SHARE = 0.6
ROUNDS = 3
WALL_FACTOR, START_UP_S = 8.0, 300.0
"""Seconds on the clock that a core-second may take on a busy machine, and those allowed beside the budget."""

ERRORS = 3.0
"""Standard errors by which a trained policy has to be better than random play."""


@dataclass(frozen=True)
class Family:
    """One game of a family.

    Fields:
      kwargs: options of the env.
      num_envs: games at once while the speed is measured.
      python: whether the env is a Python program, whose share is held against the bound.
      games: of the match that measures what was learnt; 0 where random play cannot be beaten.
      shared: whether the seats win together, so that the return of all of them counts and not the score.
      stakes: whether a game pays more or less, so that the return counts and not the score: who folds loses little.
    """

    env_id: str
    kwargs: Mapping[str, object] = field(default_factory=dict)
    num_envs: int = 64
    python: bool = True
    games: int = 200
    shared: bool = False
    stakes: bool = False


SMALL_HANABI = {"colors": 2, "ranks": 3, "hand_size": 2}
FAMILIES = {
    "classic_connect_four": Family("pettingzoo:classic/connect_four_v3"),
    "classic_tic_tac_toe": Family("pettingzoo:classic/tictactoe_v3"),
    "classic_leduc": Family("pettingzoo:classic/leduc_holdem_v4", games=1000, stakes=True),
    "classic_rps": Family("pettingzoo:classic/rps_v2", games=0),
    "classic_hanabi": Family("pettingzoo:classic/hanabi_v5", SMALL_HANABI, shared=True),
    "butterfly_knights_archers_zombies": Family(
        "pettingzoo:butterfly/knights_archers_zombies_v11", {"max_cycles": 200}, num_envs=16, games=80, shared=True
    ),
    "atari_pong_ram": Family("pettingzoo:atari/pong_v3", {"obs_type": "ram", "max_cycles": 500}, num_envs=8, games=48),
    "gymnasium_frozen_lake": Family("gymnasium:FrozenLake-v1", {"is_slippery": False}),
    "gymnasium_blackjack": Family("gymnasium:Blackjack-v1", games=2000),
    "gymnasium_acrobot": Family("gymnasium:Acrobot-v1", games=20),
    "gymnasium_pendulum": Family("gymnasium:Pendulum-v1", games=50),
    "openspiel_leduc": Family("openspiel:leduc_poker", python=False, games=4000, stakes=True),
    "openspiel_goofspiel": Family("openspiel:goofspiel(num_cards=4,imp_info=true)", python=False, games=1000),
    "openspiel_kuhn_three_seats": Family("openspiel:kuhn_poker(players=3)", python=False, games=3000, stakes=True),
    "openspiel_breakthrough": Family("openspiel:breakthrough(rows=6,columns=6)", python=False),
    "built_in_othello": Family("othello", python=False),
}


def main() -> int:
    """Run the benchmark; exit 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_row_options(parser, FAMILIES)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement of speed; 0 for none")
    parser.add_argument("--core-seconds", type=float, default=45.0, help="of each training; 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="of the training runs")
    options = parser.parse_args()
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    seconds, core_seconds, seed = options.seconds, options.core_seconds, options.seed
    return measure_rows(
        chosen_rows(parser, options, FAMILIES),
        lambda name, folder: measure(name, folder, seconds=seconds, core_seconds=core_seconds, seed=seed),
        results=options.results,
        as_json=options.json,
        conditions={"seconds": seconds, "core_seconds": core_seconds, "seed": seed},
    )


def measure(name: str, folder: Path, *, seconds: float, core_seconds: float, seed: int) -> Report:
    """The rows of one family: its speed if there are `seconds`, what it learns if there are `core_seconds`.

    Args:
      folder: for the run of the training.
    """
    family, report = FAMILIES[name], Report()
    if seconds:
        add_speed(report, name, family, seconds=seconds)
    if core_seconds and family.games:
        try:
            add_learning(report, name, family, core_seconds=core_seconds, seed=seed, folder=folder)
        except RunFailed as error:
            print(error, file=sys.stderr, flush=True)
            report.add(f"{name}: trainings that ended; one {error.reason}", 0, "runs", at_least=1)
    return report


def add_speed(report: Report, name: str, family: Family, *, seconds: float) -> None:
    """Add the rates through the adapter and of the bare env, and their ratio."""
    ours, bare = [], []
    for _ in range(ROUNDS):
        with contextlib.closing(make(EnvConfig(family.env_id, dict(family.kwargs)), num_envs=family.num_envs)) as env:
            rate = bare_rate(env, seconds=seconds)
            bare.append(openspiel_rate(family.env_id, seconds) if rate is None else rate)
            ours.append(adapter_rate(env, seconds=seconds))
    report.add(f"{name}: decisions, {family.num_envs} games at once", statistics.median(ours), "/core-s")
    if bare[0] is None:
        return
    pairs = [(own, alone) for own, alone in zip(ours, bare, strict=True) if alone is not None]
    report.add(f"{name}: decisions of the bare env", statistics.median(alone for _, alone in pairs), "/core-s")
    share = statistics.median(own / alone for own, alone in pairs)
    report.add(f"{name}: share of the bare env's rate", share, "", at_least=MIN_SHARE if family.python else None)


def adapter_rate(env: Any, *, seconds: float) -> float:
    """Decisions a core-second of a batched env at random play."""
    bot, turn, played, decisions = RandomBot(seed=0), env.reset(0), [], 0
    stop = time.process_time() + seconds
    while time.process_time() < stop:
        played.append(bot.act(env, turn, np.arange(turn.env_index.size)))
        decisions += len(played[-1])
        turn = env.step(played[-1])
    env.reset(0)
    began = time.process_time()
    for actions in played:
        env.step(actions)
    return decisions / (time.process_time() - began)


def openspiel_rate(env_id: str, seconds: float) -> float | None:
    """Decisions a core-second of one state of an OpenSpiel game; None for another env."""
    if not env_id.startswith("openspiel:"):
        return None
    import pyspiel

    game, rng = pyspiel.load_game(env_id.partition(":")[2]), np.random.default_rng(0)
    episodes, decisions, stop = [], 0, time.process_time() + seconds
    while time.process_time() < stop:
        state = game.new_initial_state()
        while not state.is_terminal():
            seats = range(game.num_players()) if state.is_simultaneous_node() else (state.current_player(),)
            chosen = [int(rng.choice(state.legal_actions(seat))) for seat in seats]
            decisions += 0 if state.is_chance_node() else len(chosen)
            apply(state, chosen)
        episodes.append([list(part) for part in _parts(state, game.num_players(), game)])
    began = time.process_time()
    for episode in episodes:
        replay(game, episode)
    return decisions / (time.process_time() - began)


def apply(state: Any, chosen: list[int]) -> None:
    """Take the actions of the seats, or of chance."""
    if len(chosen) > 1:
        state.apply_actions(chosen)
    else:
        state.apply_action(chosen[0])


def _parts(state: Any, num_players: int, game: Any) -> Iterator[list[int]]:
    """The actions of a finished game, those taken at once together."""
    again, history = game.new_initial_state(), iter(state.history())
    while not again.is_terminal():
        chosen = [next(history) for _ in range(num_players if again.is_simultaneous_node() else 1)]
        yield chosen
        apply(again, chosen)


def replay(game: Any, episode: list[list[int]]) -> None:
    """Play a game with everything that a user's loop asks the state for."""
    facts, state = game.get_type(), game.new_initial_state()
    for chosen in episode:
        if state.is_chance_node():
            state.chance_outcomes()
        else:
            see = (
                state.information_state_tensor if facts.provides_information_state_tensor else state.observation_tensor
            )
            for seat in range(len(chosen)) if len(chosen) > 1 else (state.current_player(),):
                state.legal_actions(seat)
                see(seat)
        apply(state, chosen)
        state.is_terminal()
    state.returns()


def add_learning(report: Report, name: str, family: Family, *, core_seconds: float, seed: int, folder: Path) -> None:
    """Train with the shipped defaults, and add what the newest policy and random play get against random play.

    Args:
      folder: for the run.

    Raises:
      RunFailed: the training did not end in time or in order.
    """
    plain = {
        "name": "family",
        "seed": seed,
        "env": {"id": family.env_id, "kwargs": dict(family.kwargs)},
        "runtime": {"kind": "inprocess"},
        "budget": {"core_seconds": core_seconds},
        "evaluation": {"bots": []},
        "wandb": {"mode": "disabled"},
    }
    (folder / "family.yaml").write_text(yaml.safe_dump(plain))
    league = str(Path(sys.executable).with_name("league"))
    run_to_end(
        [league, "train", f"{folder / 'family.yaml'}", "--run-dir", f"{folder / 'run'}"],
        log=folder / "log.txt",
        timeout_s=WALL_FACTOR * core_seconds + START_UP_S,
    )
    trained: Policy = load_policy(folder / "run", player="last").as_seat_policy()
    env = EnvConfig(family.env_id, dict(family.kwargs))
    with contextlib.closing(make(env, num_envs=1)) as made:
        alone = family.shared or made.spec.num_teams == 1
    learnt, error = against_random(trained, env, games=family.games, alone=alone, stakes=family.stakes)
    chance, chance_error = against_random(random_policy(0), env, games=family.games, alone=alone, stakes=family.stakes)
    unit = "return" if alone or family.stakes else "score"
    report.add(f"{name}: random play", chance, unit)
    bound = chance + ERRORS * float(np.hypot(error, chance_error))
    report.add(f"{name}: after {core_seconds:g} core-s", learnt, unit, at_least=bound)


def against_random(
    policy: Policy, env: EnvConfig, *, games: int, alone: bool, stakes: bool = False
) -> tuple[float, float]:
    """Mean score against random play and its standard error.

    Args:
      alone: the policy has all seats; the mean is of their returns. stakes: the mean is of the policy's return.
    """
    policies = [policy] if alone else [policy, random_policy(1)]
    result = Match(env, policies, seed=771203).play(games)
    if alone:
        values = result.team_returns.mean(axis=(0, 2))
    else:
        values = result.team_returns[:, :, 0].mean(axis=0) if stakes else result.group_scores[:, 0]
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


def random_policy(seed: int) -> Policy:
    """Random play as a policy."""
    return BotPolicy(make_bot("random", seed=seed))


if __name__ == "__main__":
    raise SystemExit(main())

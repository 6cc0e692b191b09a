"""A schedule of the simulation: its faults by their numbers, its smaller forms, and the text that replays it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import yaml

GATE = {"min_steps": 100, "timeout_steps": 350, "test": {"min_games": 4}}
SHARED: dict[str, Any] = {
    "env": {"id": "tic_tac_toe"},
    "name": "simulated",
    "seed": 5,
    "network": {"hidden": [4]},
    "learner": {"unroll_length": 4, "batch_rows": 16, "precision": "float32"},
    "actors": {"num_envs": 12},
    "runtime": {"kind": "ray", "actor_hosts": 2, "checkpoint_updates": 6},
    "budget": {"env_steps": 1_000_000},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
    "control": {"door": False},
}
TUNED = [{"name": "learning_rate", "initial": 1.0, "low": 0.1, "high": 10.0}]
LEAGUES: dict[str, dict[str, Any]] = {
    "one": {"players": [{"role": "main_agent", "gate": GATE}]},
    "roles": {
        "players": [
            {"role": "main_agent", "step_weight": 2.0, "gate": GATE},
            {"role": "main_exploiter", "gate": GATE},
            {"role": "league_exploiter", "gate": {**GATE, "reset_probability": 0.5}},
        ],
    },
    "pbt": {
        "players": [{"role": "main_agent", "count": 3, "gate": GATE}],
        "pbt": {
            "selection": "tournament",
            "hyperparameters": TUNED,
            "period_steps": 200,
            "burn_in_steps": 200,
            "min_games": 1,
        },
    },
}
for _league in LEAGUES.values():
    _league.update(lease_steps=16, ratings={"step_fraction": 0.1, "final_leases": 2})

OPERATIONS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("pause", {"what": "training"}),
    ("unpause", {"what": "training"}),
    ("pause", {"what": "main_agent"}),
    ("unpause", {"what": "main_agent"}),
    ("set", {"key": "learner.entropy_cost", "value": 0.02}),
    ("set", {"key": "learner.entropy_cost", "value": 0.005}),
    ("set", {"key": "players.main-0.step_weight", "value": 3.0}),
    ("add", {"role": "main_agent"}),
    ("snapshot", {}),
    ("reset", {"player": "main-0"}),
    ("extend", {"limit": "env_steps", "amount": 500}),
    ("retire", {"player": "nobody"}),
)


@dataclass(frozen=True)
class Schedule:
    """The faults of a schedule, by its numbers alone.

    Fields:
      seed: of every choice. league: of `LEAGUES`.
      deaths: steps after which each session but the last dies. disk: steps after which the disk fails once in a session
        instead; 0 for never.
      lost, doubled, late, hosts, jumps, operations: whether there are such faults, and requests of an operator.
      env_steps: of each session.
    """

    seed: int
    league: str = "roles"
    deaths: tuple[int, ...] = ()
    disk: int = 0
    lost: bool = True
    doubled: bool = True
    late: bool = True
    hosts: bool = True
    jumps: bool = True
    operations: bool = True
    env_steps: int = 300

    @classmethod
    def of_seed(cls, seed: int) -> Schedule:
        """The schedule of a seed."""
        rng = random.Random(seed)
        deaths = tuple(int(10 ** rng.uniform(0.0, 2.6)) for _ in range(rng.choice((1, 1, 1, 2))))
        return cls(
            seed,
            league=rng.choice(list(LEAGUES)),
            deaths=deaths,
            disk=rng.choice((0, 0, 0, int(10 ** rng.uniform(0.0, 2.6)))),
            operations=rng.random() < 0.5,
            env_steps=rng.choice((100, 200, 400)),
        )


SWITCHES = ("operations", "jumps", "late", "doubled", "hosts", "lost")


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A smaller schedule that still fails: without each fault that is not needed, and with fewer deaths."""
    smaller = [replace(schedule, deaths=schedule.deaths[:number]) for number in range(len(schedule.deaths))]
    schedule = next((plan for plan in smaller if fails(plan)), schedule)
    for change in (*({name: False} for name in SWITCHES), {"disk": 0}, {"env_steps": 200}):
        plan = replace(schedule, **change)  # type: ignore[arg-type]
        if plan != schedule and fails(plan):
            schedule = plan
    return schedule


def replay_text(schedule: Schedule) -> str:
    """The arguments that replay a schedule."""
    plain = asdict(schedule)
    given = {key: value for key, value in plain.items() if value != getattr(Schedule(schedule.seed), key)}
    return yaml.safe_dump({"seed": schedule.seed, **given}, default_flow_style=True, width=10_000).strip()

"""The league: matchmaking between players, and the daemon that runs it.

Python users start with `train`, `League` or `load_policy`; `report` and `evaluate` tell of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from league.core.state.built_ins import Options, use_loaders
from league.version import __version__

if TYPE_CHECKING:
    from league.deploy.serving.opponent import as_opponent as as_opponent
    from league.judge.matches.evaluation import evaluate_run as evaluate
    from league.policies.exact.load_policy import load_policy as load_policy
    from league.run.launch import train_game as train
    from league.run.own_trainer.own_league import League as League
    from league.see.reports.figures.shown_report import report as report

__all__ = ["League", "__version__", "as_opponent", "evaluate", "load_policy", "report", "train"]

FOR_USERS = {
    "League": "league.run.own_trainer.own_league:League",
    "as_opponent": "league.deploy.serving.opponent:as_opponent",
    "evaluate": "league.judge.matches.evaluation:evaluate_run",
    "load_policy": "league.policies.exact.load_policy:load_policy",
    "report": "league.see.reports.figures.shown_report:report",
    "train": "league.run.launch:train_game",
}
"""Name -> the "module:attribute" that it stands for, loaded when it is asked for: most bring in torch, for which
`import league` (and with it every command) must not wait."""


def _load(name: str) -> object:
    from league.envs.plugins import load

    return load(name)


def _load_admitted(name: str) -> object:
    from league.envs.plugins import load_admitted

    return load_admitted(name)


def _build(component: type, options: Options) -> object:
    from league.config.component_options import build_component

    return build_component(component, options)


# Every import of a part of this package passes here, also that of a bare learner: nothing else is imported yet.
use_loaders(built_in=_load, own=_load_admitted, build=_build)


def __getattr__(name: str) -> object:
    if name in FOR_USERS:
        return _load(FOR_USERS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

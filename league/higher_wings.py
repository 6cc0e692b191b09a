"""Built-in components that lie in a wing above the one whose registry names them: name -> "module:attribute".

A wing imports and names only what lies below it. What stands here is loaded by name, and only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

SOLVERS: Mapping[str, str] = {"nash": "league.policies.nash_lp:nash"}
"""The linear program lies outside the core with the package that solves it."""

CONTENDERS: Mapping[str, str] = {
    "http": "league.deploy.serving.served:find_served",
    "unix": "league.deploy.serving.served:find_served",
}

PROBES: Mapping[str, str] = {
    "best_response": "league.lab.exploit.best_response:BestResponse",
    "exploiter": "league.lab.exploit.best_response:BestResponse",
}
"""The second name is that of runs before release 0.4, which open as they did."""

METRIC_SINKS: Mapping[str, str] = {"wandb": "league.see.trackers.wandb_sink:open_wandb_sink"}

OPTIONAL_SINKS: Mapping[str, str] = {
    "tensorboard": "league.see.trackers.tensorboard_sink:TensorboardSink",
    "mlflow": "league.see.trackers.mlflow_sink:open_mlflow_sink",
}

PAGE = "league.see.page.beside"
"""The module that serves the page of a run beside its daemon."""

"""The `league` command, put together from the groups of `league.cli`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import typer

from league.cli import (
    chaos,
    control,
    disk,
    evaluation,
    history,
    judging,
    operating,
    packages,
    page,
    pool,
    reference,
    replaying,
    reports,
    static_report,
    sweep,
    training,
    trial,
)
from league.cli.command_line import run_command

Command = Callable[..., None]
Group = tuple[str, Mapping[str, Command]]
"""The help of a group of commands, and these by name."""

POOL: Group = (
    "Rate frozen policies of several leagues against anchors, for weeks.",
    {
        **{"init": pool.init, "add": pool.add, "run": pool.run, "list": pool.list_, "push": pool.push},
        **{"serve": pool.serve, "work": pool.work, "test": pool.test, "tests": pool.tests, "withdraw": pool.withdraw},
    },
)
WANDB: Group = ("The runs of a league at wandb.", {"sync": disk.sync})

PANELS: Mapping[str, Mapping[str, Command | Group]] = {
    "Train": {
        **{"train": training.train, "resume": training.resume, "init": trial.init, "explain": trial.explain},
        **{"check-env": trial.check_env, "simulate": trial.simulate, "config": reference.config},
        **{
            "presets": reference.presets,
            "sweep": sweep.sweep,
            "sweep-report": sweep.sweep_report,
            "study": sweep.study,
        },
    },
    "Runs in the background": {
        **{"up": operating.up, "down": operating.down, "restart": operating.restart, "ps": operating.ps},
        **{"logs": operating.logs, "top": operating.top, "serve": page.serve, "label": operating.label},
    },
    "Look at a run": {
        **{"status": reports.status, "ratings": reports.ratings, "payoff": reports.payoff, "lineage": reports.lineage},
        **{"probes": reports.probes, "doctor": reports.doctor, "diff": reports.diff, "report": static_report.report},
        "verify": reports.verify,
    },
    "Play and watch": {
        **{"play": replaying.play, "watch": replaying.watch, "replay": replaying.replay, "replays": replaying.replays}
    },
    "Measure strength": {
        **{"eval": evaluation.evaluate, "match": judging.match, "tournament": judging.tournament},
        **{"exploit": evaluation.exploit, "pool": POOL},
    },
    "Use policies elsewhere": {
        **{"export": packages.export, "import": packages.import_package, "serve-policy": packages.serve_policy},
        **{"engine": packages.engine, "zoo": packages.zoo, "push": packages.push},
    },
    "Change a live league": {
        **{"set": control.set_values, "extend": control.extend, "pause": control.pause, "unpause": control.unpause},
        **{"snapshot": control.snapshot, "reset": control.reset, "add": control.add, "retire": control.retire},
        **{"freeze": control.freeze, "admit": control.admit, "tag": control.tag, "untag": control.untag},
        **{"pin": control.pin, "unpin": control.unpin, "hosts": control.hosts, "undo": control.undo},
    },
    "History, disk and support": {
        **{"fork": history.fork, "rewind": history.rewind, "backup": disk.backup, "gc": disk.gc, "delete": disk.delete},
        **{"bundle": reports.bundle, "chaos": chaos.chaos, "wandb": WANDB},
    },
}
"""Heads of the help -> the commands under each by name, in order."""


def _app() -> typer.Typer:
    """The `league` command with all others."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(reference.options)
    for head, commands in PANELS.items():
        for name, command in commands.items():
            if isinstance(command, tuple):
                group = typer.Typer(no_args_is_help=True, help=command[0])
                for inner, inner_command in command[1].items():
                    group.command(inner)(inner_command)
                app.add_typer(group, name=name, rich_help_panel=head)
            else:
                settings = {"ignore_unknown_options": command is control.extend}  # a negative amount is no option
                app.command(name, rich_help_panel=head, context_settings=settings)(command)
    return app


app = _app()


def main() -> NoReturn:
    """Run the command; a user's mistake is one sentence and exit code 2, never a traceback."""
    run_command(app)

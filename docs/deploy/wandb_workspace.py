"""Makes a workspace at wandb for the leagues of a project: `python wandb_workspace.py ENTITY PROJECT [MAIN [RIVAL]]`.

Needs `pip install wandb-workspaces` and a login. `--print` shows it as JSON and saves nothing.
"""

from __future__ import annotations

import sys

import wandb_workspaces.reports.v2 as wr
import wandb_workspaces.workspaces as ws

STEPS = "league/env_steps"


def line(title: str, *metrics: str) -> wr.LinePlot:
    """A chart of metrics over the env steps."""
    return wr.LinePlot(title=title, x=STEPS, y=list(metrics))


def workspace(entity: str, project: str, main: str, exploiter: str) -> ws.Workspace:
    """Five sections: strength, who beats whom, learning, games, health."""
    player = f"player/{main}"
    strength = [
        line("Rating with its 95 % interval", *(f"{player}/rating{end}_elo" for end in ("_low", "", "_high"))),
        line("Best rating of the league", "league/best_rating_elo"),
        line("Rating, all players", "player/rating_elo"),
        line("Win rate over its opponents", "player/win_rate"),
    ]
    pairings = [
        line(f"{exploiter} against {main}", f"player/{exploiter}/versus/{main}"),
        line("At each decision of a gate: the hardest opponent", "gate/hardest_win_rate", "gate/hardest_lower"),
        line("Opponents", *(f"matchmaking/{kind}" for kind in ("self", "players", "own_past", "others_past"))),
    ]
    learning = [
        line("Entropy", "learner/entropy"),
        line("Losses", "learner/loss_policy", "learner/loss_value"),
        line("Policy lag", "learner/lag_mean", "learner/lag_max"),
        line("Clipped ratios", "learner/rho_clip_fraction"),
    ]
    games = [line("Return", "player/return_mean"), line("Length of a game", "player/episode_length_mean")]
    health = [line("Steps per second", "league/steps_per_s"), line("Hosts lost", "league/hosts_lost")]
    named = {"Strength": strength, "Who beats whom": pairings, "Learning": learning, "Games": games, "Health": health}
    sections = [ws.Section(name=name, panels=panels, is_open=True) for name, panels in named.items()]
    return ws.Workspace(entity=entity, project=project, name="League", sections=sections)


def main() -> None:
    """Save the workspace, or show it."""
    shown = "--print" in sys.argv
    entity, project, *players = [word for word in sys.argv[1:] if word != "--print"]
    made = workspace(entity, project, *(players + ["main-0", "main-exploiter-0"][len(players) :]))
    if shown:
        print(made._to_model().model_dump_json(by_alias=True))
    else:
        made.save()
        print(made.url)


if __name__ == "__main__":
    main()

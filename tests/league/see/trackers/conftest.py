"""One tiny run with its trackers on, read by several tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.envs.protocol import EnvConfig
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.judge.recording.replay_file import write_replay
from league.run.alerts.sink import AlertContext, AlertNews, make_alert_sink
from league.store.storage import Storage
from tests.league.tiny_runs import start, tiny

ALERT = AlertNews("run", "gate_silent", "main-0", "firing", "main-0 takes no snapshot.", since=1.0, at=2.0)


@pytest.fixture(scope="session")
def tracked_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("tracked")
    run = folder / "run"
    for name in ("replays", "wandb"):
        (run / name).mkdir(parents=True)
    (run / "replays" / "upset.html").write_text("<html><body>an upset</body></html>")
    bots = [bot_policy("random", seed=seed) for seed in (0, 1)]
    write_replay(run / "replays" / "game-0000.replay", record_game(EnvConfig("tic_tac_toe"), bots, 1))
    make_alert_sink("wandb", AlertContext(run, Storage()), place="alerts.sinks.0").deliver(ALERT)
    wandb = {"mode": "offline", "models": "all", "project": "games", "tags": ["v1"], "player_runs": 2}
    with pytest.MonkeyPatch.context() as patch:
        for deadline in ("CLOSE_DEADLINE_S", "SILENT_DEADLINE_S"):  # a loaded machine takes its time
            patch.setattr(f"league.see.trackers.uploading_sink.{deadline}", 150.0)
        patch.setattr("league.run.monitor.observer.METRICS_EVERY_S", 0.2)
        start(folder, tiny(wandb=wandb), env_steps=2_500)
    return run

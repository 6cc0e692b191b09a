"""Event files as TensorBoard's own reader sees them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from league.run.monitor.sink import check_plugin_sink, open_plugin_sink
from tests.league.run.monitor.test_sinks import context_of

pytest.importorskip("tensorboard")


def read_back(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """Tag -> (step, wall time, value) of a folder of events."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    return {
        tag: [(event.step, event.wall_time, event.value) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_every_value_is_read_back_and_players_share_the_names(tmp_path: Path) -> None:
    choice = {"kind": "tensorboard", "players": 1}
    check_plugin_sink(choice, place="monitor.sinks.0")
    sink = open_plugin_sink(choice, context_of(tmp_path, []))
    for step in (10, 20):
        row = {f"learner/main-{number}/entropy": 0.5 * step for number in (0, 1)}
        sink.log(step, {**row, "league/games": step + 1.0, "league/disk_free_bytes": float("nan")})
    sink.close()
    sink.close()
    sink.log(30, {"league/games": 1.0})
    assert sorted(path.name for path in (tmp_path / "tensorboard").iterdir()) == ["league", "main-0"]
    whole = read_back(tmp_path / "tensorboard" / "league")
    assert whole == {
        "league/games": [(10, 7.0, 11.0), (20, 7.0, 21.0)],
        "learner/main-0/entropy": [(10, 7.0, 5.0), (20, 7.0, 10.0)],
        "learner/main-1/entropy": [(10, 7.0, 5.0), (20, 7.0, 10.0)],
    }
    assert read_back(tmp_path / "tensorboard" / "main-0") == {"learner/entropy": [(10, 7.0, 5.0), (20, 7.0, 10.0)]}


def test_the_settings_of_a_run_are_compared_in_the_tab_of_hyperparameters(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    config = {"name": "one", "learner": {"learning_rate": 0.5}, "league": {"players": [{"self_play": True}]}}
    sink = open_plugin_sink({"kind": "tensorboard"}, replace(context_of(tmp_path, []), config=config))
    sink.log(10, {"league/games": 1.0})
    sink.close()
    found = EventAccumulator(str(tmp_path / "tensorboard" / "league")).Reload()
    content = found.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert sorted(settings) == ["league.players.0.self_play", "learner.learning_rate", "name"]
    assert (settings["name"].string_value, settings["learner.learning_rate"].number_value) == ("one", 0.5)
    assert settings["league.players.0.self_play"].bool_value

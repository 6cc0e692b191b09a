"""Metrics as event files for TensorBoard: RUN/tensorboard/league, and a folder of each player beside it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins.hparams.metadata import NULL_TENSOR, PLUGIN_DATA_VERSION, PLUGIN_NAME, SESSION_START_INFO_TAG
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from league.config.yaml import yaml_text
from league.errors import LeagueError
from league.policies.auto_export import BEST
from league.run.monitor.row_spacing import RowSpacing
from league.run.monitor.sink import SinkContext
from league.see.trackers.best_snapshot import best_snapshot
from league.see.trackers.player_rows import player_rows

FLUSH_S = 10
LEAGUE = "league"


@dataclass(frozen=True)
class TensorboardConfig:
    """Options. players: those with a folder of their own, whose metrics have the same names in each."""

    players: int = 16


class TensorboardSink:
    """Writes in a thread of TensorBoard's own writer. `tensorboard --logdir RUN/tensorboard` shows it."""

    def __init__(self, context: SinkContext, options: TensorboardConfig) -> None:
        self._run_path = context.run_path
        self._path = context.run_path / "tensorboard"
        self._step = 0
        self._clock = context.clock
        self._players = options.players
        self._spacing = RowSpacing()
        self._writers: dict[str, EventFileWriter] = {}
        self._closed = False
        self._config = context.config

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self._closed or not self._spacing.is_due(values):
            return
        self._step = int(step)
        self._write(LEAGUE, step, values)
        for player, own in player_rows(values).items():
            if player in self._writers or len(self._writers) <= self._players:
                self._write(player, step, own)

    def close(self) -> None:
        """As in the protocol; says first which snapshot is the best, and where its weights are."""
        if not self._closed and LEAGUE in self._writers:
            self._tell_best()
        self._closed = True
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _tell_best(self) -> None:
        with contextlib.suppress(LeagueError):  # a run without a journal has none
            best = best_snapshot(self._run_path)
            if best is not None:
                event = Event(wall_time=self._clock(), step=self._step, summary=_text(BEST, best.text))
                self._writers[LEAGUE].add_event(event)

    def _write(self, name: str, step: int, values: Mapping[str, float]) -> None:
        if name not in self._writers:
            self._writers[name] = EventFileWriter(str(self._folder(name)), flush_secs=FLUSH_S)
            if name == LEAGUE:
                for summary in (_text("config", yaml_text(self._config)), _settings(self._config, self._clock())):
                    self._writers[name].add_event(Event(wall_time=self._clock(), summary=summary))
        numbers = [
            Summary.Value(tag=tag, simple_value=float(value)) for tag, value in values.items() if math.isfinite(value)
        ]
        event = Event(wall_time=self._clock(), step=int(step), summary=Summary(value=numbers))
        self._writers[name].add_event(event)

    def _folder(self, name: str) -> Path:
        return self._path / name


def _text(tag: str, text: str) -> Summary:
    """A text for the tab of texts, which shows four blanks as a block of code."""
    shown = "\n".join(f"    {line}" for line in text.splitlines())
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    tensor = TensorProto(dtype="DT_STRING", string_val=[shown.encode()])
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def _settings(config: object, now: float) -> Summary:
    """The settings of a run for the tab of hyperparameters, where runs are compared; dotted key -> value."""
    plain = HParamsPluginData(version=PLUGIN_DATA_VERSION)
    plain.session_start_info.start_time_secs = now
    for key, value in _leaves(config, ""):
        entry = plain.session_start_info.hparams[key]
        if isinstance(value, bool):
            entry.bool_value = value
        elif isinstance(value, int | float):
            entry.number_value = value
        else:
            entry.string_value = "" if value is None else str(value)
    data = SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=plain.SerializeToString())
    metadata = SummaryMetadata(plugin_data=data)
    return Summary(value=[Summary.Value(tag=SESSION_START_INFO_TAG, metadata=metadata, tensor=NULL_TENSOR)])


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from _leaves(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for place, one in enumerate(value):
            yield from _leaves(one, f"{path}.{place}")
    elif path:
        yield path, value

"""Looks at the league each turn for what may act on it: the floor of the disk, the alerts, and the rating pool."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from league.config.run_config import RunConfig
from league.core.metagame.ratings import RatingRow
from league.core.state.state import LeagueState
from league.judge.pools.push import PoolPusher, open_pusher
from league.run.alerts.condition import AlertInputs
from league.run.alerts.watch import AlertWatch, open_alerts
from league.run.daemon_status import DaemonStatus
from league.run.operations.disk_floor import DiskFloor
from league.store.run_folder import RunFolder


@dataclass(frozen=True)
class Watches:
    """The watches of a run.

    Fields:
      floor: pauses training while the disk is nearly full.
      alerts: reports what is wrong. pusher: sends snapshots to a rating pool.
    """

    floor: DiskFloor
    alerts: AlertWatch
    pusher: PoolPusher

    def look(self, state: LeagueState, seen: DaemonStatus, *, ratings: Mapping[str, RatingRow], now: float) -> None:
        """Let each look; returns at once most of the time.

        Args:
          ratings: of policies, by name. now: seconds that never go back.
        """
        self.floor.look(state)
        self.alerts.look(
            AlertInputs(
                now=now,
                phase=seen.phase,
                state=state,
                progress=seen.progress,
                gone=seen.gone,
                parked=seen.troubles.parked,
                ratings=ratings,
                disk_free=self.floor.free_bytes,
                disk_floor=self.floor.floor_bytes,
            )
        )
        self.pusher.look(state)


@contextlib.contextmanager
def open_watches(
    config: RunConfig, folder: RunFolder, floor: DiskFloor, *, say: Callable[[str], object]
) -> Iterator[Watches]:
    """The watches that a configuration names, closed at the end.

    Raises:
      ConfigError: an alert condition or sink cannot be made.
    """
    with (
        contextlib.closing(open_alerts(config.alerts, folder, say=say)) as alerts,
        open_pusher(config.pool, folder, say=say) as pusher,
    ):
        yield Watches(floor, alerts, pusher)

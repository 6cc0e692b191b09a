"""The built-in alert conditions: lost hosts, learners that do not learn, silent gates, a full disk, falling ratings,
and ratings that rise alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from league.core.gates.gates import GATE, TIMEOUT
from league.core.metagame.probe_series import series_of
from league.core.metagame.ratings import RatingRow, rated_snapshots
from league.core.metagame.stagnation import find_stagnation
from league.core.state.state import LeagueState, PlayerState
from league.envs.text.number_text import number_text
from league.hosts.protocol import LearnerProgress
from league.run.alerts.condition import AlertInputs

TRAINING = "training"


@dataclass(frozen=True)
class HostLostOptions:
    """Options: after_s is how long a host is gone before it is an alert; a host that starts again is none."""

    after_s: float = 30.0


class LostHosts:
    """A host that was lost and has not come back, or is parked since it is lost again and again."""

    def __init__(self, options: HostLostOptions) -> None:
        self._after_s = options.after_s
        self._since: dict[str, float] = {}

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """By host."""
        self._since = {host: self._since.get(host, seen.now) for host in seen.gone}
        found = {
            host: f"{host} is lost and has not come back: {reason}"
            for host, reason in seen.gone.items()
            if seen.now - self._since[host] >= self._after_s
        }
        parked = {host: f"{host} is parked, as it was lost again and again" for host in seen.parked}
        return {**parked, **found}


@dataclass(frozen=True)
class NotLearningOptions:
    """Options.

    Fields:
      skipped: updates left out as not finite within `window_s` seconds.
      entropy_fraction: of the highest entropy seen, below which a policy counts as collapsed.
      stale_fraction: of the decisions of an update, left out because they were too old.
      silent_s: seconds without an update while the league trains.
    """

    skipped: int = 3
    window_s: float = 300.0
    entropy_fraction: float = 0.02
    stale_fraction: float = 0.5
    silent_s: float = 900.0


class NotLearning:
    """A learner whose updates fail, are stale or stay away, or whose policy has lost its entropy."""

    def __init__(self, options: NotLearningOptions) -> None:
        self._options = options
        self._highest: dict[str, float] = {}
        self._skipped: dict[str, deque[tuple[float, int]]] = {}
        self._moved: dict[str, tuple[int, float]] = {}

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """By player."""
        found = {}
        for name, player in seen.state.players.items():
            progress = seen.progress.get(name)
            reasons = [*self._silence(seen, player)]
            if progress is not None:
                reasons = [*self._failures(seen.now, name, progress), *self._of_update(name, progress), *reasons]
            if reasons:
                found[name] = f"{name} does not learn: {'; '.join(reasons)}"
        return found

    def _failures(self, now: float, name: str, progress: LearnerProgress) -> Iterator[str]:
        known = self._skipped.setdefault(name, deque())
        if known and progress.skipped < known[-1][1]:  # another process counts from zero
            known.clear()
        known.append((now, progress.skipped))
        while now - known[0][0] > self._options.window_s:
            known.popleft()
        failed = progress.skipped - known[0][1]
        if failed >= self._options.skipped:
            yield f"{failed} updates of the last {self._options.window_s:g} s were not finite"

    def _of_update(self, name: str, progress: LearnerProgress) -> Iterator[str]:
        update = progress.update
        if update is None or not update.steps + update.stale_steps:
            return
        highest = self._highest[name] = max(self._highest.get(name, 0.0), update.entropy)
        if update.entropy < self._options.entropy_fraction * highest:
            yield f"its entropy is {number_text(update.entropy)} nats, of {number_text(highest)} once"
        stale = update.stale_steps / (update.steps + update.stale_steps)
        if stale >= self._options.stale_fraction:
            yield f"{stale:.0%} of its decisions are too old (policy lag {update.lag_mean:.0f} updates)"

    def _silence(self, seen: AlertInputs, player: PlayerState) -> Iterator[str]:
        version, since = self._moved.get(player.name, (-1, seen.now))
        is_due = seen.phase == TRAINING and player.is_active and not seen.state.training_paused
        if version != player.version or not is_due:
            since = seen.now
        self._moved[player.name] = (player.version, since)
        if seen.now - since >= self._options.silent_s:
            yield f"no update for {seen.now - since:.0f} s"


@dataclass(frozen=True)
class GateSilentOptions:
    """Options: timeouts is how many snapshots in a row the timeout takes before it is an alert."""

    timeouts: int = 4


class GateSilent:
    """A gate that never fires: the player's last snapshots were all taken by the timeout."""

    def __init__(self, options: GateSilentOptions) -> None:
        self._timeouts = options.timeouts

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """By player."""
        if not seen.state.is_competitive:
            return {}
        return {
            player.name: f"the gate of {player.name} is silent: its last {self._timeouts} snapshots came by the timeout"
            for player in seen.state.players.values()
            if player.is_active and self._is_silent(seen.state, player)
        }

    def _is_silent(self, state: LeagueState, player: PlayerState) -> bool:
        gate = state.config_of(player.name).gate
        if gate.timeout_steps <= gate.min_steps:
            return False  # snapshots every so many steps are what was asked for
        reasons = (state.snapshots[name].reason for name in player.snapshot_ids() if name in state.snapshots)
        judged = [reason for reason in reasons if reason in (GATE, TIMEOUT)][: self._timeouts]
        return len(judged) == self._timeouts and GATE not in judged


@dataclass(frozen=True)
class DiskLowOptions:
    """Options: floors is the free space, in floors of `retention.floor_gib`, below which it is an alert."""

    floors: float = 1.5


class DiskLow:
    """The disk of the run is nearly full. It has recovered once a quarter more is free."""

    def __init__(self, options: DiskLowOptions) -> None:
        self._floors = options.floors
        self._is_low = False

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """Of the run itself."""
        limit = self._floors * seen.disk_floor
        self._is_low = seen.disk_free < (1.25 * limit if self._is_low else limit)
        if not self._is_low:
            return {}
        free, floor = seen.disk_free / 2**30, seen.disk_floor / 2**30
        return {"": f"{free:.2f} GiB are free on the disk of the run; training pauses below {floor:.2f} GiB"}


@dataclass(frozen=True)
class RatingDriftOptions:
    """Options: elo is how much weaker the newest snapshot is than the best, beyond both intervals."""

    elo: float = 50.0


class RatingDrift:
    """A player that gets worse: its newest rated snapshot is weaker than an earlier one."""

    def __init__(self, options: RatingDriftOptions) -> None:
        self._elo = options.elo

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """By player."""
        found = {}
        for player in seen.state.players.values():
            rated = list(rated_snapshots(player, seen.ratings))
            if player.is_active and len(rated) > 1:
                newest, best = rated[0], max(rated, key=_low)
                if best.low > newest.high and best.elo - newest.elo >= self._elo:
                    found[player.name] = (
                        f"{player.name} gets worse: its newest rated snapshot {newest.policy} has {newest.elo:+.0f} "
                        f"Elo, {best.policy} has {best.elo:+.0f}"
                    )
        return found


class RatingsWithoutStrength:
    """Ratings that rise while fixed yardsticks do not (`league.core.metagame.stagnation`); asked with each result."""

    def __init__(self) -> None:
        self._known: tuple[object, Mapping[str, str]] = (None, {})

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """Of the run itself."""
        known = (len(seen.ratings), seen.state.probes.begun, seen.state.probes.open is None)
        if known != self._known[0]:
            found = find_stagnation(series_of(seen.state), seen.ratings)
            self._known = (known, {} if found is None else {"": found.text()})
        return self._known[1]


def _low(row: RatingRow) -> float:
    return row.low

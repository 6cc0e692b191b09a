"""Snapshot of a run for display: filled by the daemon, shown by the console and the status command.

Shape letters: R rows (players), C columns (opponents).
"""

from __future__ import annotations

from dataclasses import dataclass

from league.core.player_account import PlayerAccount

MIN_FRACTION = 0.005
"""Of the budget, from which on its pace is known."""
LEARNING = ("training", "running")
"""Phases in which the budget is being spent: of the daemon and of its heartbeat."""


@dataclass(frozen=True)
class GateView:
    """A player's distance from its next snapshot.

    Fields:
      steps, min_steps, timeout_steps: trained since the last snapshot or reset; the gate's two limits.
      beaten, gate_opponents: how many of its opponents it beats by enough, and how many there are.
    """

    steps: int
    min_steps: int
    timeout_steps: int
    beaten: int
    gate_opponents: int


@dataclass(frozen=True, kw_only=True)
class PlayerView(PlayerAccount):
    """One player, with what its learner and its gate report.

    Fields:
      win_rate: mean over its opponents, None before the first game.
      loss: policy + value loss; entropy: nats; policy_lag: updates, mean; None before the first update.
      gate: None where the player has none. next_snapshot_s: seconds until the next snapshot at the latest, whatever
        its gate says; None where nothing tells.
    """

    win_rate: float | None = None
    loss: float | None = None
    entropy: float | None = None
    policy_lag: float | None = None
    gate: GateView | None = None
    next_snapshot_s: float | None = None


@dataclass(frozen=True)
class PayoffView:
    """Win rates of some players against some members.

    Fields:
      rows: [R] players. columns: [C] players or snapshots, those with most games first.
      win_rates: [R][C] posterior mean of the row's win rate, draws 1/2; None where they have not met.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    win_rates: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class RunView:
    """One run.

    Fields:
      run: path of its folder. phase: "starting", "training", "rating", "draining", "stopped", or as of a heartbeat.
      elapsed_s: time of training. budget_fraction: fraction of the budget that is spent, None without one.
      games, env_steps: totals. steps_per_s: recent. snapshots: how many. workers: live hosts.
      players: in the order in which they joined.
      payoff: None before the first game.
      notes: what happened last, newest last.
    """

    run: str
    phase: str
    elapsed_s: float
    budget_fraction: float | None
    games: int
    env_steps: int
    steps_per_s: float
    snapshots: int
    workers: int
    players: tuple[PlayerView, ...] = ()
    payoff: PayoffView | None = None
    notes: tuple[str, ...] = ()

    @property
    def left_s(self) -> float | None:
        """Seconds until the budget is spent at the pace so far; None without a budget, and before there is a pace."""
        spent = self.budget_fraction
        if spent is None or spent < MIN_FRACTION or spent >= 1.0 or self.phase not in LEARNING:
            return None
        return self.elapsed_s * (1.0 - spent) / spent

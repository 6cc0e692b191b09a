"""The record of evolution strategies: what whole episodes earned, 16 bytes each.

Shape letters: R episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.field_table import FieldTable, table_line


@dataclass(frozen=True, kw_only=True)
class SeatEpisodes(FieldTable[NDArray[Any]]):
    """R episodes of one seat each.

    Fields:
      perturbations: of the weights that acted, counted from 1; negative for the opposite of one.
      returns: what the seat earned. decisions: that it made. versions: of the unperturbed weights.
    """

    perturbations: NDArray[Any] = field(metadata=table_line("R", "int32"))
    returns: NDArray[Any] = field(metadata=table_line("R", "float32"))
    decisions: NDArray[Any] = field(metadata=table_line("R", "int32"))
    versions: NDArray[Any] = field(metadata=table_line("R", "int32"))

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.versions)

    @property
    def decided_versions(self) -> NDArray[np.int32]:
        """int32 [R], of each episode."""
        versions: NDArray[np.int32] = self.versions
        return versions

    def check(self) -> None:
        """Raise ValueError where no arena can have counted this."""
        if not np.isfinite(self.returns).all():
            raise ValueError("field returns holds a number that is not finite")
        if not (self.perturbations != 0).all():
            raise ValueError("field perturbations holds 0, which stands for no perturbation")
        if not ((self.versions >= 0) & (self.decisions >= 1)).all():
            raise ValueError("field versions or decisions holds a number that is too small")


NOBODY = -1


class EpisodeRecorder:
    """Counts what perturbed seats earn, in rounds: in each, one seat of every game plays one episode.

    A round begins from a seed, so that an arena of equal games and an equal seed plays it on the same opponents, seats
    and chance. It is over when every game has ended once, or when newer weights have come: what plays on would be late.
    A game that ends early idles until the next round. So does one whose seat has made as many decisions as its policy
    allows: its episode counts as it stands then.

    Args:
      num_games: of the arena; one seat of each is recorded. num_rows: games times seats.
      seed: of the rounds; those of an arena that plays the opposites are the same.
    """

    def __init__(self, *, num_games: int, num_rows: int, seed: int) -> None:
        self._num_games, self._seed = num_games, seed
        self._version, self._round = 0, -1
        self._begun = self._is_late = False
        self._returns = np.zeros(num_rows, np.float64)
        self._decisions = np.zeros(num_rows, np.int32)
        self._versions = np.full(num_rows, NOBODY, np.int32)
        self._perturbations = np.zeros(num_rows, np.int32)
        self._caps = np.zeros(num_rows, np.int32)
        self._cut = np.zeros(0, np.int64)
        self._ended = np.zeros(num_rows, np.bool_)

    def next_round(self) -> int | None:
        """Seed of the round that is to begin now, None while one is played."""
        if self._begun and not self._is_late and np.count_nonzero(self._ended) < self._num_games:
            return None
        self._round = 0 if self._is_late else self._round + 1
        self._begun, self._is_late = True, False
        for array, blank in ((self._returns, 0), (self._decisions, 0), (self._versions, NOBODY), (self._ended, False)):
            array[:] = blank
        return int(np.random.SeedSequence([self._seed, self._version, self._round]).generate_state(1)[0])

    def observe(
        self,
        rows: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray[np.generic]],
        action_mask: NDArray[np.bool_] | None,
        rewards: NDArray[np.float32],
        core: NDArray[np.float32] | None,
    ) -> SeatEpisodes | None:
        """As in `Recorder`; only rewards count. Returns episodes that are cut here."""
        del obs, action_mask, core
        self._returns[rows] += np.where(self._decisions[rows] > 0, rewards, 0.0)
        is_over = (self._caps[rows] > 0) & (self._decisions[rows] >= self._caps[rows]) & ~self._ended[rows]
        if not is_over.any():
            return None
        self._cut = rows[is_over]
        return self._counted(self._cut)

    def take_cut(self) -> NDArray[np.int64]:
        rows, self._cut = self._cut, np.zeros(0, np.int64)
        return rows

    def completes(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """As in `Recorder`: no core state is recorded."""
        return np.zeros(len(rows), np.bool_)

    def act(self, rows: NDArray[np.int64], **decided: NDArray[np.generic] | None) -> None:
        """As in `Recorder`. decided: `versions`, `perturbations` and `caps` int32 [K]; a cap of 0 is none."""
        versions, perturbations, caps = decided["versions"], decided.get("perturbations"), decided.get("caps")
        assert versions is not None and perturbations is not None, "a seat was recorded whose policy is not perturbed"
        newest = int(np.max(versions))
        if newest != self._version:
            self._version, self._is_late = newest, True
        first = self._decisions[rows] == 0
        self._perturbations[rows[first]], self._versions[rows[first]] = perturbations[first], versions[first]
        self._caps[rows[first]] = 0 if caps is None else caps[first]
        self._decisions[rows] += 1

    def end(
        self,
        rows: NDArray[np.int64],
        *,
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        final_obs: Mapping[str, NDArray[np.generic]] | None,
    ) -> SeatEpisodes | None:
        """As in `Recorder`: the episodes that count."""
        del terminated, final_obs
        self._returns[rows] += np.where(self._decisions[rows] > 0, rewards, 0.0)
        return self._counted(rows)

    def abandon(self, rows: NDArray[np.int64]) -> None:
        """As in `Recorder`: a pair without this episode is not counted."""
        self._ended[rows] = True
        self._returns[rows], self._decisions[rows] = 0.0, 0

    def save(self) -> dict[str, NDArray[np.generic]]:
        """As in `Recorder`: a round is not continued, the next one is played."""
        return {"round": np.array([self._version, self._round], np.int64)}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        self._version, self._round = (int(number) for number in np.asarray(saved["round"], np.int64))
        self._begun = self._is_late = False

    def _counted(self, rows: NDArray[np.int64]) -> SeatEpisodes | None:
        """End the episodes of rows; returns those that count."""
        counted = ~self._ended[rows] & (self._decisions[rows] > 0) & (self._versions[rows] == self._version)
        done = self._episodes(rows[counted]) if counted.any() else None
        self._ended[rows] = True
        self._returns[rows], self._decisions[rows] = 0.0, 0
        return done

    def _episodes(self, rows: NDArray[np.int64]) -> SeatEpisodes:
        return SeatEpisodes(
            perturbations=self._perturbations[rows],
            returns=self._returns[rows].astype(np.float32),
            decisions=self._decisions[rows],
            versions=self._versions[rows],
        )

"""Spacing of rows for sinks whose files cannot be thinned: farther apart the longer a run has lasted."""

from __future__ import annotations

from collections.abc import Mapping

from league.run.monitor.names import ELAPSED_S

ROWS_PER_E_FOLD = 10_000
"""Rows while a run's time grows by a factor of e: 2 s apart until five and a half hours, four minutes apart after
30 days."""


class RowSpacing:
    """Tells which rows are kept."""

    def __init__(self) -> None:
        self._kept_at: float | None = None

    def is_due(self, values: Mapping[str, float]) -> bool:
        """True for a row that is kept."""
        elapsed = values.get(ELAPSED_S.name)
        if elapsed is not None and self._kept_at is not None and elapsed - self._kept_at < elapsed / ROWS_PER_E_FOLD:
            return False
        self._kept_at = elapsed
        return True

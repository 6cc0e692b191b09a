"""Replay as its papers define it, one row at a time: sums by a loop, the limiter by its inequalities."""

from __future__ import annotations

from collections.abc import Sequence


def slot_at(weights: Sequence[float], point: float) -> int:
    """The first slot at which the running sum exceeds `point` times the total (Schaul et al. 2016, appendix B.2.1)."""
    left = point * sum(weights)
    last = 0
    for slot, weight in enumerate(weights):
        if weight > 0.0:
            last = slot
            if left < weight:
                return slot
        left -= weight
    return last


def importance_weights(errors: Sequence[float], drawn: Sequence[int], *, alpha: float, beta: float) -> list[float]:
    """(N P(i))^-beta, divided by the largest of the batch (Schaul et al. 2016, section 3.4)."""
    priorities = [error**alpha for error in errors]
    total = sum(priorities)
    raw = [(len(errors) * priorities[slot] / total) ** -beta for slot in drawn]
    return [weight / max(raw) for weight in raw]


class LiteralLimiter:
    """Reverb's `SampleToInsertRatio`: bounds on inserts * ratio - samples around that of the smallest table."""

    def __init__(self, ratio: float, min_size: int, error_buffer: float) -> None:
        self.ratio, self.min_size = ratio, min_size
        self.least = ratio * min_size - error_buffer
        self.most = ratio * min_size + error_buffer
        self.inserted = self.sampled = 0

    def may_insert(self, rows: int, size: int) -> bool:
        if size < self.min_size:
            return True
        return (self.inserted + rows) * self.ratio - self.sampled <= self.most

    def may_sample(self, rows: int, size: int) -> bool:
        if size < self.min_size:
            return False
        return self.inserted * self.ratio - (self.sampled + rows) >= self.least

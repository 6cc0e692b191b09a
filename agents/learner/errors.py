"""Errors of a learner that its caller can distinguish."""

from __future__ import annotations

from typing import Any


class LearnerError(Exception):
    """Base of a learner's errors."""


class NonFiniteError(LearnerError):
    """Updates stayed non-finite even after a rollback to the last finite state."""


class StageError(LearnerError):
    """A worker was lost; the message names it and the cause, if known. The group can be restarted."""


class StageDiedError(StageError):
    """A worker's process ended, or it reported an error and ended."""


class PeersLostError(StageDiedError):
    """Another worker of the group is gone; raised in a worker that waits for it, whose own weights are whole."""


class ReplicaLostError(StageDiedError):
    """A replica was lost, while others hold newer weights than any restart state.

    Attributes:
      saved: arrays to continue from, see `Updater.load`. lost_steps: decisions learnt from that went with the replica.
    """

    def __init__(self, text: str, saved: dict[str, Any], *, lost_steps: int) -> None:
        super().__init__(text)
        self.saved = saved
        self.lost_steps = lost_steps


class StageHungError(StageError):
    """A worker did not answer within the stated deadline."""


class FeederError(LearnerError):
    """Base of the feeder's errors."""


class FeederFullError(FeederError):
    """More rows were pushed than there are credits for. Wait, then push again."""


class FeederTimeoutError(FeederError):
    """No rows arrived within the deadline."""


class FeederClosedError(FeederError):
    """The feeder was closed during a wait."""


class GradientCheckError(LearnerError):
    """A backend's gradients differ from plain autograd's: training with it would be wrong and does not start."""

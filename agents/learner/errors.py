"""What can go wrong in a learner that its caller may want to tell apart."""

from __future__ import annotations


class LearnerError(Exception):
    """Any of the below."""


class NonFiniteError(LearnerError):
    """Updates stayed non-finite even after going back to the last finite state."""


class StageError(LearnerError):
    """A worker was lost; the message says which one and what is known. The group can be started again."""


class StageDiedError(StageError):
    """A worker's process ended, or it reported an error and ended."""


class StageHungError(StageError):
    """A worker did not answer within the stated deadline."""


class FeederError(LearnerError):
    """Any trouble of the feeder; the message says which."""


class FeederFullError(FeederError):
    """More rows were pushed than there are credits for. Wait, then push again."""


class FeederTimeoutError(FeederError):
    """No rows came within the deadline."""


class FeederClosedError(FeederError):
    """The feeder was closed while it was waited for."""


class GradientCheckError(LearnerError):
    """A backend's gradients differ from plain autograd's: training with it would be wrong, so it does not start."""

"""A gate that freezes a snapshot at fixed intervals, whatever the win rates are."""

from dataclasses import dataclass

from league.core.gates.gates import GATE, Trial, Verdict, evidence_of


@dataclass(frozen=True)
class EverySoOften:
    """Fires after a number of trained steps. The fields are its options.

    Fields:
      steps: trained since the last snapshot or reset.
    """

    steps: int = 1_000_000

    def __call__(self, trial: Trial) -> Verdict | None:
        """A snapshot is due, or None for "not yet"; asked only once `min_steps` have been trained."""
        if trial.steps < self.steps:
            return None
        return Verdict(GATE, evidence_of(trial), gate_opponents=len(trial.gate_opponents))

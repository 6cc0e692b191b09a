"""The configuration of a learner: batch, loss weights, schedules, precision, and distribution over workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from league.agents.learner.pipeline_config import PipelineConfig
from league.envs.component_choice import Component, given_options, kind_of
from league.envs.text.number_text import number_text

PRECISIONS = {"auto": "auto", "float32": "float32", "fp32": "float32", "bfloat16": "bfloat16", "bf16": "bfloat16"}
"""Accepted spellings and what they mean."""

COMPILE_MODES = ("none", "default", "reduce-overhead")
"""The last one replays CUDA graphs on a GPU."""

DEFAULT_ALGORITHM = "vtrace"
EVOLUTION = ("es", "cmaes")
DEFAULT_OPTIMIZER = "adam"
DEFAULT_ROW_SOURCE = "fifo"
VALUE_NORMALISATIONS = ("none", "popart")

CHOICES = {
    "precision": PRECISIONS,
    "compile_mode": COMPILE_MODES,
    "value_normalisation": VALUE_NORMALISATIONS,
}


MAX_UNROLL_LENGTH = 4096
"""Most decisions in one unroll: an actor host keeps one unroll for every game and seat."""

MAX_BATCH_ROWS = 1 << 20
"""Most unrolls in one update, which a learner holds twice."""

MAX_LEARNING_RATE = 1e3
"""Largest step size; a larger one takes the weights beyond all bounds within a few updates."""

MAX_COST = 1e6
"""Largest weight of a term of the loss."""

NOT_NEGATIVE = ("learning_rate_end", "entropy_cost", "entropy_cost_end", "max_policy_lag")
MAXIMA = {
    "unroll_length": MAX_UNROLL_LENGTH,
    "batch_rows": MAX_BATCH_ROWS,
    "learning_rate": MAX_LEARNING_RATE,
    "learning_rate_end": MAX_LEARNING_RATE,
    "entropy_cost": MAX_COST,
    "entropy_cost_end": MAX_COST,
    "teacher_cost": MAX_COST,
    "teacher_cost_end": MAX_COST,
}
"""Setting of a learner -> the most that it may be."""


@dataclass(frozen=True)
class LearnerConfig:
    """The configuration of one learner; the defaults learnt Connect Four and poker fastest in measurements.

    Fields:
      unroll_length: T, decisions of one seat in one unroll.
      per_episode: whether an unroll holds one whole episode of a seat, so that its outcome is in it; decisions that are
        missing at its end are not learnt from. An episode of more than `unroll_length` decisions is cut.
      batch_rows: unrolls in one update.
      microbatches: M, equal blocks of rows whose gradients are summed before the update (per replica).
      algorithm: "vtrace", "ppo", "appo", "dqn", "ddpg", "td3", "search_targets" or "module:attribute" of an objective;
        "es" or "cmaes", which learn from what episodes of perturbed weights earn; or a mapping of its name as `kind`
        and its options, see `algorithms.config`. With the option `evolves: true` one's own is such an updater.
      optimizer: "adam", "rmsprop" or "module:attribute" of a builder, or a mapping of its name as `kind` and its
        options, see `step.optimizer_config`.
      row_source: "fifo", which hands out each row once, or "module:attribute" of your own, or a mapping of its name as
        `kind` and its options, see `data.row_source`.
      learning_rate: the optimizer's step size at the start; it falls linearly over the budget.
      learning_rate_end: the step size at the end of the budget.
      entropy_cost: weight of the entropy per unit of advantage at the start; it falls linearly over the budget. Far
        above the usual 0.01: with less, self-play repeats a few lines and learns nothing more.
      entropy_cost_end: weight of the entropy at the end of the budget.
      value_normalisation: "popart" regresses on value targets divided by their running standard deviation, so that one
        learning rate fits returns of any size; it needs `network.value_output: popart`.
      value_rate: weight of a batch in those running moments; the first batches count for more.
      teacher_cost: weight of KL(teacher || policy) at the start; it falls linearly over the budget. The teacher is an
        imported policy with the same network, which never changes. Its memory is empty at the start of every unroll,
        since the recorded state is the policy's own. 0 for none.
      teacher_cost_end: weight of the teacher at the end of the budget.
      gamma: discount of one own decision.
      bootstrap_time_limits: whether an episode that a time limit cuts off counts as unfinished, so that values after
        the limit are expected too. False where the limit is part of the game: nothing is won after it.
      target_every: updates between two moves of the target network (APPO's target, the magnet).
      target_rate: the part of the way to the learning network that it moves each time.
      ema_share: the moving average of the weights spans about this share of the optimizer steps so far; 0 for none.
      normalise_advantages: divide advantages by their running root mean square (PPO: standardise them over the
        batch, those of each seat group by themselves).
      reward_scales: factors of the rewards that are learnt from: one for all seats, or one for each seat group in the
        order of the game; empty for none. Values are then in the scaled units, as is `advantage_floor`.
      advantage_floor: least number that advantages are divided by, in units of the return. Where nothing is at stake
        noise is then not scaled up, and where play has become pure the entropy keeps its weight.
      max_grad_norm: global norm that the gradient is clipped to.
      max_policy_lag: in updates; decisions of older behaviour policies are masked out and counted.
      precision: "float32" ("fp32"), "bfloat16" ("bf16"), or "auto": bfloat16 if measured to be faster at the start.
      compile_mode: torch.compile's mode for an undivided network, or "none"; it needs a C++ compiler and tens of
        seconds at the start, and pays off for networks of many small layers. An LSTM stays as it is.
      rollback_after: consecutive non-finite updates after which the last finite state is restored.
      pipeline: how the work is spread over stages and workers.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    unroll_length: int = 16
    per_episode: bool = False
    batch_rows: int = 128
    microbatches: int = 1
    algorithm: Component = DEFAULT_ALGORITHM
    optimizer: Component = DEFAULT_OPTIMIZER
    row_source: Component = DEFAULT_ROW_SOURCE
    learning_rate: float = 2e-3
    learning_rate_end: float = 1e-4
    entropy_cost: float = 0.4
    entropy_cost_end: float = 0.1
    value_normalisation: str = "none"
    value_rate: float = 3e-4
    teacher_cost: float = 0.0
    teacher_cost_end: float = 0.0
    gamma: float = 0.99
    bootstrap_time_limits: bool = True
    target_every: int = 2
    target_rate: float = 1.0
    ema_share: float = 0.1
    normalise_advantages: bool = True
    reward_scales: tuple[float, ...] = ()
    advantage_floor: float = 0.0
    max_grad_norm: float = 1.0
    max_policy_lag: int = 200
    precision: str = "auto"
    compile_mode: str = "none"
    rollback_after: int = 3
    pipeline: PipelineConfig = field(default_factory=PipelineConfig)

    @property
    def evolves(self) -> bool:
        """True for updaters without gradients, which learn from `Episodes`; one's own has the option `evolves`."""
        kind = kind_of(self.algorithm, DEFAULT_ALGORITHM)
        return kind in EVOLUTION or (":" in kind and given_options(self.algorithm).get("evolves") is True)

    @property
    def pieces(self) -> int:
        """Microbatches that a whole batch is cut into: one for each thread where there are several."""
        return max(self.microbatches, self.pipeline.threads)

    @property
    def microbatch_rows(self) -> int:
        """Rows of one microbatch."""
        return self.batch_rows // (self.rows_cut * self.microbatches)

    @property
    def rows_cut(self) -> int:
        """Replicas that share one batch: 1 where each takes a batch of its own."""
        return 1 if self.pipeline.is_free else self.pipeline.replicas

    def learning_rate_at(self, budget_fraction: float) -> float:
        """Step size when `budget_fraction` of the budget is spent, in [0, 1]."""
        return _linear(self.learning_rate, self.learning_rate_end, budget_fraction)

    def entropy_cost_at(self, budget_fraction: float) -> float:
        """Entropy weight when `budget_fraction` of the budget is spent, in [0, 1]."""
        return _linear(self.entropy_cost, self.entropy_cost_end, budget_fraction)

    def teacher_cost_at(self, budget_fraction: float) -> float:
        """Weight of the KL to the teacher when `budget_fraction` of the budget is spent, in [0, 1]."""
        return _linear(self.teacher_cost, self.teacher_cost_end, budget_fraction)

    @property
    def has_teacher(self) -> bool:
        """True if a teacher has any weight, now or later."""
        return self.teacher_cost > 0 or self.teacher_cost_end > 0

    def problems(self) -> list[str]:
        found = [*self._batch_problems(), *self._joint_problems()]
        found += [f"pipeline.{problem}" for problem in self.pipeline.problems()]
        for name in ("gamma", "value_rate"):
            if not 0 < getattr(self, name) <= 1:
                found.append(f"{name}: {getattr(self, name)} is not in (0, 1]")
        if not 0 <= self.target_rate <= 1:
            found.append(f"target_rate: {self.target_rate} is not in [0, 1]")
        if not 0 <= self.ema_share <= 1:
            found.append(f"ema_share: {self.ema_share} is not in [0, 1]")
        if not 0 <= self.advantage_floor < math.inf:
            found.append(f"advantage_floor: {self.advantage_floor} is not at least 0 and finite")
        if not all(0 < scale < math.inf for scale in self.reward_scales):
            found.append(f"reward_scales: {list(self.reward_scales)} must be greater than 0 and finite")
        for name in ("teacher_cost", "teacher_cost_end"):
            if getattr(self, name) < 0:
                found.append(f"{name}: {getattr(self, name)} must be at least 0, or the policy would flee its teacher")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                found.append(f"{name}: {getattr(self, name)!r} is none of {', '.join(allowed)}")
        for name in ("learning_rate", "max_grad_norm"):
            if getattr(self, name) <= 0:
                found.append(f"{name}: {getattr(self, name)} must be greater than 0")
        for name in NOT_NEGATIVE:
            if getattr(self, name) < 0:
                found.append(f"{name}: {getattr(self, name)} must be at least 0")
        for name, most in MAXIMA.items():
            if most < getattr(self, name) < math.inf:  # that it is finite is looked at elsewhere
                found.append(f"{name}: {getattr(self, name)} must be at most {number_text(most, 9)}")
        for name in ("unroll_length", "target_every", "rollback_after"):
            if getattr(self, name) < 1:
                found.append(f"{name}: {getattr(self, name)} must be at least 1")
        return found

    def problems_with(self, value_output: str) -> list[str]:
        """Conflicts with `NetworkConfig.value_output`, one sentence each."""
        if (self.value_normalisation == "popart") == (value_output == "popart"):
            return []
        return [
            f"value_normalisation: {self.value_normalisation} does not go with network.value_output {value_output}: "
            "the moments of popart are part of the network, set both to popart or neither"
        ]

    def _batch_problems(self) -> list[str]:
        replicas = self.rows_cut
        counts = {"batch_rows": self.batch_rows, "microbatches": self.microbatches}
        missing = [f"{name}: {count} must be at least 1" for name, count in counts.items() if count < 1]
        if missing or replicas < 1:
            return missing
        if self.batch_rows % (self.microbatches * replicas):
            return [
                f"batch_rows: {self.batch_rows} rows do not cut into {self.microbatches} equal microbatches"
                + (f" for each of {replicas} replicas" if replicas > 1 else "")
            ]
        return []

    def _thread_problems(self) -> list[str]:
        """Conflicts of other settings with several threads, one sentence each."""
        threads, found = self.pipeline.threads, []
        if self.compile_mode != "none":
            found.append(f"compile_mode: {self.compile_mode} is for a network in one thread, not in {threads}")
        if self.microbatches > 1:
            found.append(f"microbatches: {threads} threads cut the batch themselves; use 1, not {self.microbatches}")
        if self.pipeline.replicas > 1:
            found.append(
                f"pipeline.replicas: {self.pipeline.replicas} replicas in processes do not go with {threads} threads; "
                "use one or the other"
            )
        if self.batch_rows % threads:
            found.append(f"batch_rows: {self.batch_rows} rows do not cut into equal parts for {threads} threads")
        return found

    def _joint_problems(self) -> list[str]:
        """Conflicts of other settings with the pipeline, one sentence each."""
        found, pipeline = [], self.pipeline
        if self.compile_mode != "none" and pipeline.stages > 1:
            found.append(
                f"compile_mode: {self.compile_mode} is for a network in one piece, not in {pipeline.stages} stages"
            )
        if pipeline.threads > 1:
            found += self._thread_problems()
        if pipeline.stages > 1 and pipeline.schedule != "gpipe" and self.microbatches < pipeline.pipeline_workers:
            found.append(
                f"microbatches: {pipeline.schedule} over {pipeline.pipeline_workers} workers needs at least as many "
                f"microbatches, got {self.microbatches}"
            )
        return found


def _linear(start: float, end: float, budget_fraction: float) -> float:
    return start + (end - start) * min(max(budget_fraction, 0.0), 1.0)

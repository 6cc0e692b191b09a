"""The configuration of a learner: batch, loss weights, schedules, precision, and distribution over workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from league.envs.component_choice import Component, given_options, kind_of
from league.envs.protocol import MAX_DEADLINE_S
from league.envs.text.number_text import number_text

PRECISIONS = {"auto": "auto", "float32": "float32", "fp32": "float32", "bfloat16": "bfloat16", "bf16": "bfloat16"}
"""Accepted spellings and what they mean."""

SCHEDULES = ("gpipe", "1f1b", "interleaved", "interleaved_zero_bubble")

LOOPED_SCHEDULES = ("interleaved", "interleaved_zero_bubble")
"""Schedules in which a worker holds more than one stage."""

COMPILE_MODES = ("none", "default", "reduce-overhead")
"""The last one replays CUDA graphs on a GPU."""

DEFAULT_ALGORITHM = "vtrace"
EVOLUTION = ("es", "cmaes")
DEFAULT_OPTIMIZER = "adam"
DEFAULT_ROW_SOURCE = "fifo"
AUTO_BACKEND = "auto"
DEFAULT_UPDATE_MODE = "all_reduce"

FREE_MODES = ("parameter_server", "hogwild")
"""Update modes whose replicas run on clocks of their own; so do those of any other with the option `asynchronous`."""

VALUE_NORMALISATIONS = ("none", "popart")

CHOICES = {
    "precision": PRECISIONS,
    "compile_mode": COMPILE_MODES,
    "value_normalisation": VALUE_NORMALISATIONS,
}


MAX_THREADS = 256
"""Most threads of one learner."""

MAX_UNROLL_LENGTH = 4096
"""Most decisions in one unroll: an actor host keeps one unroll for every game and seat."""

MAX_BATCH_ROWS = 1 << 20
"""Most unrolls in one update, which a learner holds twice."""

MAX_LEARNING_RATE = 1e3
"""Largest step size; a larger one takes the weights beyond all bounds within a few updates."""

MAX_COST = 1e6
"""Largest weight of a term of the loss."""

MAX_PARTS = 1024
"""Most stages, or replicas, of one learner."""

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
class PipelineConfig:
    """Distribution of the learner's work over stages, replicas and workers.

    Fields:
      backend: computes gradients: "single", "data_parallel" (threads that each learn from their own rows),
        "threaded_pipeline" (a thread per stage in this process), "torch_pipeline" (a worker per stage), or "auto":
        "torch_pipeline" if there are several stages, "data_parallel" if there are several threads, else "single"; or
        "module:attribute" of your own, or a mapping of its name as `kind` and its options.
      threads: of one process that each learn from their own rows. On Ray the others only help where actor hosts wait
        for room, whose cores are idle then. On a GPU each has a stream, and one is enough to fill most GPUs.
      stages: S, number of stages of the network. schedule: order of their tasks, see `SCHEDULES`.
      stages_per_worker: stages that one worker holds under a looped schedule.
      stage_cut: blocks of each stage, first to last; empty for a cut by measured times.
      replicas: copies that each learn from their own rows of the batch.
      update_mode: how the replicas agree: "all_reduce", "local_sgd", "gossip", "parameter_server", "hogwild" or
        "module:attribute" of your own, or a mapping of its name as `kind` and its options, see `replicas.config`.
      stage_timeout_s: seconds after which a worker without an answer counts as hung.
      start_timeout_s: the same for the start of all workers, which includes importing and compiling.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    backend: Component = AUTO_BACKEND
    threads: int = 1
    stages: int = 1
    schedule: str = "1f1b"
    stages_per_worker: int = 2
    stage_cut: tuple[int, ...] = ()
    replicas: int = 1
    update_mode: Component = DEFAULT_UPDATE_MODE
    stage_timeout_s: float = 60.0
    start_timeout_s: float = 180.0

    @property
    def backend_name(self) -> str:
        """Name of the backend, "auto" resolved."""
        name = kind_of(self.backend, AUTO_BACKEND)
        if name != AUTO_BACKEND:
            return name
        if self.stages > 1:
            return "torch_pipeline"
        return "data_parallel" if self.threads > 1 else "single"

    @property
    def pipeline_workers(self) -> int:
        """Number of workers of one replica of the network."""
        if self.backend_name != "torch_pipeline":
            return 1
        return self.stages // self.stages_per_worker if self.schedule in LOOPED_SCHEDULES else self.stages

    @property
    def num_workers(self) -> int:
        """Number of worker processes beside the learner's own; 0 if it computes by itself."""
        if self.is_free:
            return self.replicas + self.num_shards
        workers = self.replicas * self.pipeline_workers
        return 0 if workers == 1 and self.backend_name != "torch_pipeline" else workers

    @property
    def is_free(self) -> bool:
        """True if each replica takes the next batch when it is idle."""
        asynchronous = given_options(self.update_mode).get("asynchronous") is True
        return asynchronous or kind_of(self.update_mode, DEFAULT_UPDATE_MODE) in FREE_MODES

    @property
    def num_shards(self) -> int:
        """Processes of a parameter server, beside those of the replicas."""
        if kind_of(self.update_mode, DEFAULT_UPDATE_MODE) != "parameter_server":
            return 0
        shards = given_options(self.update_mode).get("shards", 1)
        return shards if isinstance(shards, int) else 1  # another is refused where options are checked

    @property
    def waits_for_all(self) -> bool:
        """True if free replicas begin their batches together, because a step takes the gradients of all."""
        return self.is_free and given_options(self.update_mode).get("sync") is True

    def problems(self) -> list[str]:
        """Every invalid setting, one sentence each that starts with the field's name."""
        found = []
        for name in ("stages", "replicas", "stages_per_worker"):
            if not 1 <= getattr(self, name) <= MAX_PARTS:
                found.append(f"{name}: {getattr(self, name)} is not between 1 and {MAX_PARTS}")
        if not 1 <= self.threads <= MAX_THREADS:
            found.append(f"threads: {self.threads} is not between 1 and {MAX_THREADS}")
        elif self.threads > 1 and self.backend_name in ("single", "threaded_pipeline", "torch_pipeline"):
            found.append(f"threads: backend {self.backend_name} cuts no rows for {self.threads} threads; use 1")
        if self.backend_name in ("single", "data_parallel") and self.stages > 1:
            found.append(
                f"stages: backend {self.backend_name} cannot be cut into {self.stages} stages; "
                "use threaded_pipeline or torch_pipeline"
            )
        if self.backend_name in ("threaded_pipeline", "torch_pipeline") and self.stages < 2:
            found.append(f"stages: backend {self.backend_name} needs at least 2 stages, got {self.stages}")
        if self.stage_cut and len(self.stage_cut) != self.stages:
            found.append(f"stage_cut: {len(self.stage_cut)} entries for {self.stages} stages")
        if self.schedule not in SCHEDULES:
            found.append(f"schedule: {self.schedule!r} is none of {', '.join(SCHEDULES)}")
        looped = self.schedule in LOOPED_SCHEDULES
        if self.backend_name == "threaded_pipeline" and looped:
            found.append(f"schedule: threaded_pipeline runs gpipe or 1f1b, not {self.schedule}")
        if (
            self.backend_name == "torch_pipeline"
            and looped
            and (self.stages_per_worker < 2 or self.stages % self.stages_per_worker)
        ):
            found.append(f"stages: {self.stages} do not spread over workers of {self.stages_per_worker} stages each")
        for name in ("stage_timeout_s", "start_timeout_s"):
            if not 0 < getattr(self, name) <= MAX_DEADLINE_S:
                found.append(
                    f"{name}: {getattr(self, name)} must be greater than 0 and at most {number_text(MAX_DEADLINE_S)}"
                )
        return found


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
        and its options, see `algorithms.config`.
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
        """True for evolution strategies, which learn from `Episodes`, without gradients."""
        return kind_of(self.algorithm, DEFAULT_ALGORITHM) in EVOLUTION

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
        """Every invalid setting, one sentence each that starts with the field's name."""
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
                found.append(f"{name}: {getattr(self, name)} must be at most {number_text(most)}")
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

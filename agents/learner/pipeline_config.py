"""The distribution of a learner's work over stages, replicas, threads and workers."""

from __future__ import annotations

from dataclasses import dataclass

from league.envs.component_choice import Component, given_options, kind_of
from league.envs.protocol import MAX_DEADLINE_S
from league.envs.text.number_text import number_text

SCHEDULES = ("gpipe", "1f1b", "interleaved", "interleaved_zero_bubble")
LOOPED_SCHEDULES = ("interleaved", "interleaved_zero_bubble")
"""Schedules in which a worker holds more than one stage."""

AUTO_BACKEND = "auto"
DEFAULT_UPDATE_MODE = "all_reduce"
FREE_MODES = ("parameter_server", "hogwild")
"""Update modes whose replicas run on clocks of their own; so do those of any other with the option `asynchronous`."""

MAX_THREADS = 256
"""Most threads of one learner."""

MAX_PARTS = 1024
"""Most stages, or replicas, of one learner."""


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
                    f"{name}: {getattr(self, name)} must be greater than 0 and at most {number_text(MAX_DEADLINE_S, 9)}"
                )
        return found

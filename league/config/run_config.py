"""The configuration of a run: which records make it up, how a YAML file becomes one, and what cannot work together.

The component records live beside the components; the records here are those of the run itself.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.config.actor_config import ActorConfig, TrainerConfig
from league.config.learner_options import with_options
from league.config.yaml import yaml_text
from league.core.state.league_config import LeagueConfig
from league.envs.component_choice import Component
from league.envs.protocol import EnvConfig
from league.http.address import host_and_port, is_loopback


@dataclass(frozen=True)
class TeacherConfig:
    """The policy that `learner.teacher_cost` holds the players to.

    Fields:
      source: a run folder, the folder of one snapshot, or a .safetensors file of weights; empty for no teacher.
      player: of a run: "best", a snapshot's id, or a player's.
      digest: sha256 of the weights; noted when a run starts, which from then on has a copy of its own.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    source: str = ""
    player: str = "best"
    digest: str = ""


@dataclass(frozen=True)
class GameConfig:
    """The kind of the game. Settings, the export that `auto` stands for, and evaluations go by it.

    Fields:
      information: "open" where every seat sees everything, "hidden" where one does not, "unknown" where the game cannot
        say and random play met nothing hidden; null for what the game says itself.
      moves: "in_turn", or "at_once" where several seats move in the same turn; null for what its first turn shows.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    information: Literal["open", "hidden", "unknown"] | None = None
    moves: Literal["in_turn", "at_once"] | None = None


@dataclass(frozen=True)
class RuntimeConfig:
    """Placement and deadlines of the actor and learner hosts.

    Fields:
      kind: "ray", or "inprocess" for one process and a repeatable run.
      address: "local" for a Ray of the run's own, or the host:port or ray://host:port of a running one. "auto" is the
        one that RAY_ADDRESS names, as in a Ray job, and without that a Ray of the run's own.
      allow_tokenless: whether the running one may demand no token, and so obey any client that reaches it.
      actor_hosts: how many; 0 follows the cluster, with one for each CPU of its machines as these come and go.
      learner_hosts: how many.
      replay_hosts: how many keep the rows of replays and outlive learner hosts; 0 keeps them in the learner hosts.
      object_store_mb: shared memory of a local Ray, MiB.
      lease_deadline_s: seconds after which an unanswered lease is lost and its host replaced.
      progress_deadline_s: the same for a learner host that does not say how far it is, which it is asked each second.
      checkpoint_updates: most updates of a learner between two restart states; what a kill loses was learnt since.
      checkpoint_seconds: most seconds between two restart states; a run that repeats exactly goes by updates alone.
      expected_decisions: of all seats in the budget, for which `learner.entropy_cost` was chosen; 0 for none. Once a
        twentieth of the budget is spent the cost follows the decisions that it really holds.
      snapshots_per_budget: snapshots of a main agent, spread evenly over the budget (over 50 million env steps without
        one) whatever its gate says; 0 for none.
      snapshot_seconds: training time after which a main agent is frozen whatever its gate says; later in a run a tenth
        of the time trained so far, where that is longer. A deterministic run takes none by time.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kind: Literal["ray", "inprocess"] = "ray"
    address: str = "auto"
    allow_tokenless: bool = False
    actor_hosts: int = 1
    learner_hosts: int = 1
    replay_hosts: int = 0
    object_store_mb: int = 256
    lease_deadline_s: float = 120.0
    progress_deadline_s: float = 15.0
    checkpoint_updates: int = 500
    checkpoint_seconds: float = 60.0
    snapshots_per_budget: int = 0
    expected_decisions: int = 0
    snapshot_seconds: float = 300.0


@dataclass(frozen=True)
class BudgetConfig:
    """The budget that ends a run and drives its schedules; the first limit spent ends it, null for no limit.

    Fields:
      seconds: wall time of training, a resumed run's earlier parts included.
      core_seconds: processor seconds of all processes of the run.
      env_steps: steps of all games; counts where no time is given, and for a command that is itself limited
        by env steps, so that such a run repeats exactly.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    seconds: float | None = None
    core_seconds: float | None = None
    env_steps: int | None = None


@dataclass(frozen=True)
class EvaluationConfig:
    """The last measurement of a run.

    Fields:
      bots: scripted opponents, never trained with.
      games: games against each, half from either seat.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    bots: tuple[str, ...] = ("random", "tactical", "mcts:25", "mcts:100")
    games: int = 100


@dataclass(frozen=True)
class ProbesConfig:
    """Measurements of the newest snapshot by fixed yardsticks while the run trains, in a process beside it.

    Fields:
      kinds: what is measured, each a name or a mapping of its `kind` and its options; empty for nothing.
      max_share: of the run's processor time, the most that they may take.
      deadline_s: seconds after which one that has not answered is given up, and its process ended.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kinds: tuple[Component, ...] = ()
    max_share: float = 0.04
    deadline_s: float = 600.0


@dataclass(frozen=True)
class WandbConfig:
    """The tracker.

    Fields:
      mode: "auto" is online where the user is logged in and offline elsewhere; "online", "offline", "disabled".
      project: that the runs go to. entity: of the project, a user or a team; empty for the user's default one.
      tags: of every run there.
      player_runs: players that have a run of their own beside the league's.
      system_metrics: whether use of processors, memory and GPUs is tracked.
      models: snapshots that are kept there as artifacts: "best" and tagged ones, "all", or "none".
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    project: str = "league"
    entity: str = ""
    tags: tuple[str, ...] = ()
    player_runs: int = 16
    system_metrics: bool = False
    models: Literal["best", "all", "none"] = "best"

    def problems(self) -> Iterator[str]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", self.project):
            yield f"project: {self.project!r} may only hold letters, digits, '.', '_' and '-'"
        if not 0 <= self.player_runs <= 100:
            yield f"player_runs: {self.player_runs} must be at least 0 and at most 100"
        for tag in self.tags:
            if not 1 <= len(tag) <= 64:
                yield f"tags: {tag!r} must have 1 to 64 characters"


@dataclass(frozen=True)
class MonitorConfig:
    """Metrics beside metrics.jsonl and wandb.

    Fields:
      sinks: tensorboard, mlflow or sinks of the user's own, each a name or a mapping of its `kind` and its options.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    sinks: tuple[Component, ...] = ()


@dataclass(frozen=True)
class AlertsConfig:
    """Alerts of a run, each reported once, and once more when it has recovered.

    Fields:
      conditions: what is looked at, each a name or a mapping of its `kind` and its options.
      sinks: where the news go beside the console, in the same form: log, webhook, command,
        wandb, or of the user's own.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    conditions: tuple[Component, ...] = (
        "host_lost",
        "not_learning",
        "gate_silent",
        "disk_low",
        "rating_drift",
        "ratings_without_strength",
    )
    sinks: tuple[Component, ...] = ("log",)


@dataclass(frozen=True)
class ControlConfig:
    """The control door of a live run.

    Fields:
      door: whether the run has one. It listens on a unix socket that only its user can open.
      listen: "HOST:PORT" of a TCP address beside it, empty for none; each request there needs a token, from
        a file of RUN/tokens. An address that other machines reach also needs a certificate.
      hosts: names by which it may be called there, beside those of loopback.
      tls_cert: file of the certificate, in PEM. tls_key: that of its key.
      page: whether a process beside the daemon serves the web page on this machine; `league serve RUN` prints its
        address.
      page_listen: "HOST:PORT" of the page, empty for a free port of this machine. Beyond this machine it needs the
        certificate too.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    door: bool = True
    listen: str = ""
    hosts: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    page: bool = False
    page_listen: str = ""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`.

        Raises:
          ValueError: it is not of that form.
        """
        return host_and_port(self.listen)

    @property
    def url(self) -> str:
        """The URL of `listen`; empty where there is none."""
        return f"{'https' if self.tls_cert else 'http'}://{self.listen}" if self.listen else ""

    def problems(self) -> list[str]:
        if bool(self.tls_cert) != bool(self.tls_key):
            return ["tls_cert: a certificate needs its key, and a key its certificate; give both or neither"]
        return [
            *self._listen_problems("listen", self.listen, has_port=True),
            *self._listen_problems("page_listen", self.page_listen, has_port=False),
        ]

    def _listen_problems(self, key: str, text: str, *, has_port: bool) -> Iterator[str]:
        """Problems of one address. has_port: whether it must name its port, as nobody says which one is taken."""
        if not text:
            return
        try:
            host, port = host_and_port(text)
        except ValueError as error:
            yield f"{key}: {error}"
            return
        if has_port and not port:
            yield f"{key}: {text} has no port; give one from 1 to 65535"
        if not self.tls_cert and not is_loopback(host):
            yield (
                f"{key}: {text} is reached by other machines, where tokens travel in the clear; set "
                "control.tls_cert and control.tls_key, or listen on 127.0.0.1"
            )


@dataclass(frozen=True)
class RetentionConfig:
    """Limits on the disk space of a run, however long it trains.

    Fields:
      snapshots: frozen policies whose weights are kept. Records, games and ratings of the others stay; they are no
        longer opponents. Weights that the league still needs are kept regardless of this limit.
      snapshots_gib: size of the weights that are kept, a second limit of the same kind.
      metrics_mib: of metrics.jsonl; beyond it the older rows are thinned.
      spool_mib: of metrics that wait for their upload; beyond it the oldest are dropped, and the loss is reported.
      floor_gib: free space on the disk of the run below which training pauses; it continues once a quarter more is
        free. "auto" is 1, or 5 % of a small disk, and at least what all players write together. 0 never pauses.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    snapshots: int = 2_000
    snapshots_gib: float = 50.0
    metrics_mib: float = 64.0
    spool_mib: float = 64.0
    floor_gib: float | Literal["auto"] = "auto"


@dataclass(frozen=True)
class PoolConfig:
    """A rating pool that snapshots are pushed to while the run trains; training never waits for it.

    Fields:
      folder: of the pool, see `league pool`; empty for none.
      what: "tagged" pushes the snapshots that `league tag` names, "all-main" every snapshot of a main agent.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    folder: str = ""
    what: Literal["tagged", "all-main"] = "tagged"


def _default_learner() -> LearnerConfig:
    """With the options of its components, as in a configuration that was read."""
    return with_options("learner", LearnerConfig())[0]


@dataclass(frozen=True)
class RunConfig:
    """Everything that a run is started with.

    Fields:
      env: the game. All else has defaults.
      name: what the run folder's name begins with.
      seed: of everything random in the run.
      adapt: whether the run changes its own settings where a finding of `league doctor` has one remedy.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    env: EnvConfig
    game: GameConfig = field(default_factory=GameConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    name: str = "league"
    seed: int = 0
    adapt: bool = True
    network: NetworkConfig = field(default_factory=NetworkConfig)
    learner: LearnerConfig = field(default_factory=_default_learner)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    actors: ActorConfig = field(default_factory=ActorConfig)
    league: LeagueConfig = field(default_factory=LeagueConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    probes: ProbesConfig = field(default_factory=ProbesConfig)
    wandb: WandbConfig = field(default_factory=WandbConfig)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)
    alerts: AlertsConfig = field(default_factory=AlertsConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    control: ControlConfig = field(default_factory=ControlConfig)


def dump_config(config: RunConfig) -> str:
    """The resolved configuration as YAML, which `parse_config` reads back equal."""
    return yaml_text(config_plain(config))


def config_plain(config: RunConfig) -> dict[str, object]:
    """The configuration as dicts, lists and scalars, fit for JSON and for a tracker."""
    plain = plain_of(config)
    assert isinstance(plain, dict)
    return plain


def paths_that_differ(one: object, other: object, path: str = "") -> list[str]:
    """Dotted paths at which two plain records, such as two `config_plain`, differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            place
            for key in sorted({*one, *other}, key=str)
            for place in paths_that_differ(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
        ]
    return [] if one == other else [path]


def plain_of(value: object) -> object:
    """A record as dicts, lists and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain_of(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_of(item) for key, item in value.items()}
    return [plain_of(item) for item in value] if isinstance(value, list | tuple) else value

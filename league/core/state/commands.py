"""Commands of the daemon to the league; `league.core.league.decide` answers each with events or refuses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from league.core.state.events import ConfigChange
from league.core.state.league_config import LeagueConfig
from league.core.state.records import HIDDEN, AssignmentOutcome, GameKind, ProbeOutcome, Progress
from league.core.state.scoring import BY_WINS, Scoring


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure
    """The command does not fit the state, which stays as it was; the message says why."""


class NothingToLease(Refused):
    """No lease is to be had now: a directive is open for every player, training is paused, or the host is parked.

    Ask again later."""


@dataclass(frozen=True)
class CreateLeague:
    """Create the league of a game with `num_seats` seats.

    Fields:
      teams: [num_seats] team number of each seat.
      scoring: how its games are counted, whatever `config.payoff` leaves open.
      kind: of the game.
    """

    seed: int
    num_seats: int
    teams: tuple[int, ...]
    config: LeagueConfig
    scoring: Scoring = BY_WINS
    kind: GameKind = HIDDEN


@dataclass(frozen=True)
class StartRun:
    """A daemon takes over: a new token, and every lease still open is lost."""


@dataclass(frozen=True)
class StopRun:
    """The daemon stops in an orderly way; leases still open are lost."""

    reason: str


@dataclass(frozen=True)
class RequestLease:
    """An actor host asks for a lease.

    Fields:
      purpose: to "train"; to "rate", or train where nothing can be rated; "any" of both, by the ratings' step fraction;
        to "settle" the ratings once training is over, and nothing else.
      num_envs: games that it steps together; 0 where that is not known.
      steps: of the lease, where it is to be shorter than the settings say.
      player: whose training lease it is to be; empty for the player that is furthest behind its step weight.
    """

    host: str
    purpose: Literal["train", "rate", "any", "settle"] = "any"
    num_envs: int = 0
    steps: int | None = None
    player: str = ""


@dataclass(frozen=True)
class FinishLease:
    """An actor host answers a lease."""

    lease_id: int
    token: int
    env_steps: int
    outcomes: tuple[AssignmentOutcome, ...]


@dataclass(frozen=True)
class ExpireLease:
    """The daemon gives a lease up."""

    lease_id: int
    reason: str


@dataclass(frozen=True)
class ReportProgress:
    """A learner says how far it is."""

    progress: Progress


@dataclass(frozen=True)
class RequestSnapshot:
    """Freeze a player's weights whatever the gate says ("final", "manual", ...); never followed by a reset."""

    player: str
    reason: str


@dataclass(frozen=True)
class ConfirmSnapshot:
    """The weights of a snapshot directive lie in the store under `digest`."""

    directive_id: int
    digest: str
    version: int
    trained_steps: int


@dataclass(frozen=True)
class ConfirmReset:
    """The learner has started again from the source of the directive."""

    directive_id: int


@dataclass(frozen=True)
class SaveCheckpoint:
    """A learner's restart state lies under `digest`. has_ema: with a moving average of the weights."""

    player: str
    digest: str
    version: int
    trained_steps: int
    has_ema: bool = False


@dataclass(frozen=True)
class ConfirmTransplant:
    """The donor's restart state is the player's own now, under `digest`. has_ema: as of `SaveCheckpoint`."""

    directive_id: int
    digest: str
    version: int
    trained_steps: int
    has_ema: bool = False


@dataclass(frozen=True)
class DropTransplant:
    """A transplant cannot be carried out (its donor's restart state is unreadable); the player continues unchanged."""

    directive_id: int
    reason: str


@dataclass(frozen=True)
class ImportPolicy:
    """A frozen policy from outside lies in the store under `digest`. policy: "imported:NAME"."""

    policy: str
    digest: str
    version: int = 0


@dataclass(frozen=True)
class QuarantineSnapshot:
    """The weights of a snapshot cannot be read. reason: why, for people."""

    snapshot: str
    reason: str


@dataclass(frozen=True)
class RetireSnapshots:
    """There are more snapshots than are to be kept.

    Fields:
      keep: how many may stay. is_exact: whether exactly so many stay if possible, and not a few less.
      spared: policies of games in flight, which stay as well.
      note: who asks for it and why, for people; empty where the limits of the run do.
    """

    keep: int
    is_exact: bool = False
    spared: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class RestoreSnapshot:
    """The weights of a quarantined snapshot are back in the store, and are those that were written."""

    snapshot: str


@dataclass(frozen=True)
class NoteFork:
    """The league so far was taken over from another run. lost: players whose restart state is not there."""

    run: str
    event: int
    chain: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoteRewind:
    """The league was taken back to its event `event`; fields as of `LeagueRewound`."""

    event: int
    chain: str
    ended: int
    ended_chain: str
    token: int
    set_aside: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeConfig:
    """The run gets this configuration; fields as of `ConfigChanged`."""

    text: str
    changes: tuple[ConfigChange, ...] = ()
    by: str = ""


@dataclass(frozen=True)
class ChangeLeague:
    """Settings of the running league change; fields as of `SettingsChanged`. Old values that the core holds are its
    own."""

    changes: tuple[ConfigChange, ...]
    text: str = ""
    by: str = ""
    reason: str = ""
    undoes: int = 0
    remedy: str = ""


@dataclass(frozen=True)
class AddPlayer:
    """A player joins the running league.

    Fields:
      group: its index in `config.players` after the changes. parent: snapshot that it starts from; empty for new
        weights.
      changes, text, by, reason: as of `SettingsChanged`; they raise the count of the group by 1, or append it.
    """

    group: int
    changes: tuple[ConfigChange, ...]
    text: str
    parent: str = ""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True)
class RequestReset:
    """Freeze a player, and let it start again after that."""

    player: str


@dataclass(frozen=True)
class BeginProbe:
    """Measure a snapshot; fields as of `ProbeTask`."""

    probe: str
    snapshot: str
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class SpendProbe:
    """Note the cost of an attempt at the open probe; fields as of `ProbeSpent`."""

    number: int
    core_seconds: float
    is_lost: bool = False


@dataclass(frozen=True)
class EndProbe:
    """The open probe is over."""

    outcome: ProbeOutcome


Command = (
    CreateLeague
    | StartRun
    | StopRun
    | RequestLease
    | FinishLease
    | ExpireLease
    | ReportProgress
    | RequestSnapshot
    | ConfirmSnapshot
    | ConfirmReset
    | SaveCheckpoint
    | ConfirmTransplant
    | DropTransplant
    | ImportPolicy
    | QuarantineSnapshot
    | RestoreSnapshot
    | RetireSnapshots
    | NoteFork
    | NoteRewind
    | ChangeConfig
    | ChangeLeague
    | AddPlayer
    | RequestReset
    | BeginProbe
    | SpendProbe
    | EndProbe
)

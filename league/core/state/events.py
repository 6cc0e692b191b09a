"""Events of a league, in the order of the journal; the state of the league is their fold."""

from __future__ import annotations

from dataclasses import dataclass

from league.core.state.league_config import LeagueConfig
from league.core.state.probe_events import ProbeBegun, ProbeEnded, ProbeSpent
from league.core.state.records import (
    AssignmentOutcome,
    Directive,
    GameKind,
    Hyperparameter,
    Lease,
    Progress,
    SnapshotInfo,
)
from league.core.state.scoring import BY_WINS, Scoring


@dataclass(frozen=True)
class Evidence:
    """A gate's evidence about one opponent.

    Fields:
      opponent: its id. games: effective games. mean, lower: posterior win rate and its lower 5 % bound.
      unbeaten: p-value of its being unbeaten: how probable games as good as these are at most, if it is; see
        `league.core.gates.posterior_gate`. None where the gate computes none.
    """

    opponent: str
    games: float
    mean: float
    lower: float
    unbeaten: float | None = None


@dataclass(frozen=True)
class LeagueCreated:
    """The first event.

    Fields:
      teams: [num_seats] team number of each seat. scoring: how games are counted from here on.
      perfect_information: whether each seat is known to see everything; before there were kinds, and one moves at a
        time. unknown_information: whether nobody can say. moves_at_once: whether several seats move in a turn.
    """

    seed: int
    num_seats: int
    teams: tuple[int, ...]
    config: LeagueConfig
    scoring: Scoring = BY_WINS
    perfect_information: bool = False
    moves_at_once: bool = False
    unknown_information: bool = False

    @property
    def kind(self) -> GameKind:
        """The kind of the game."""
        known = "open" if self.perfect_information else "hidden"
        information = "unknown" if self.unknown_information else known
        return GameKind(information, at_once=self.moves_at_once, sides=len(set(self.teams)))


@dataclass(frozen=True)
class PlayerAdded:
    """A player joins.

    Fields:
      group: its index in `config.players`. step_weight: weight of its env steps.
      hyperparameters: PBT values that it starts with.
      parent: snapshot that it starts from; None for new weights.
    """

    player: str
    role: str
    group: int
    step_weight: float
    hyperparameters: tuple[Hyperparameter, ...] = ()
    parent: str | None = None


@dataclass(frozen=True)
class RunStarted:
    """A daemon took over; results under an older token no longer count.

    Fields:
      carries_evidence: whether the evidence of gates is carried from game to game from here on. Events of earlier
        versions say no, so that their journals fold to the states that were stored with them.
    """

    token: int
    carries_evidence: bool = False


@dataclass(frozen=True)
class RunStopped:
    """The daemon of `token` stopped in an orderly way."""

    token: int
    reason: str


@dataclass(frozen=True)
class LeaseGranted:
    """A lease is open."""

    lease: Lease


@dataclass(frozen=True)
class LeaseFinished:
    """A lease was answered; env_steps counts the steps of the games, one per move of a turn-based game."""

    lease_id: int
    token: int
    env_steps: int
    outcomes: tuple[AssignmentOutcome, ...]


@dataclass(frozen=True)
class LeaseExpired:
    """A lease was lost; an answer to it will be refused."""

    lease_id: int
    reason: str


@dataclass(frozen=True)
class ProgressReported:
    """A learner reported its progress; smaller numbers than before mean that it fell back to a checkpoint."""

    progress: Progress


@dataclass(frozen=True)
class DirectiveIssued:
    """A learner must do something.

    Fields:
      evidence: what the gate saw, hardest opponents first, where a gate issued it.
      gate_opponents: how many it judged.
    """

    directive: Directive
    evidence: tuple[Evidence, ...] = ()
    gate_opponents: int = 0


@dataclass(frozen=True)
class SnapshotAdded:
    """A snapshot directive was carried out."""

    directive_id: int
    snapshot: SnapshotInfo


@dataclass(frozen=True)
class PlayerReset:
    """A reset directive was carried out: the player started again from the snapshot `source`."""

    directive_id: int
    player: str
    source: str


@dataclass(frozen=True)
class CheckpointSaved:
    """A learner's restart state lies under `digest`. has_ema: with a moving average of the weights."""

    player: str
    digest: str
    version: int
    trained_steps: int
    has_ema: bool = False


@dataclass(frozen=True)
class PlayerTransplanted:
    """A transplant directive was carried out: the player continues from the restart state of `donor`, as one unit.

    Fields:
      source: snapshot that the donor's weights descend from, None for none.
      digest, version, trained_steps: the player's own new restart state.
      hyperparameters: those it continues with.
      has_ema: whether that restart state holds a moving average of the weights.
    """

    directive_id: int
    player: str
    donor: str
    source: str | None
    digest: str
    version: int
    trained_steps: int
    hyperparameters: tuple[Hyperparameter, ...]
    has_ema: bool = False


@dataclass(frozen=True)
class DirectiveDropped:
    """A directive can no longer be carried out and is withdrawn."""

    directive_id: int
    reason: str


@dataclass(frozen=True)
class PolicyImported:
    """A frozen policy that was trained elsewhere joins the population."""

    snapshot: SnapshotInfo


@dataclass(frozen=True)
class SnapshotQuarantined:
    """The weights of a snapshot cannot be read: it is no longer an opponent, and its records stay.

    Fields:
      reason: why, for people.
    """

    snapshot: str
    reason: str


@dataclass(frozen=True)
class SnapshotRetired:
    """The weights of a snapshot go, as they are not needed; its record, games and rating stay. reason: for people."""

    snapshot: str
    reason: str


@dataclass(frozen=True)
class SnapshotRestored:
    """The weights of a quarantined snapshot are there again, and are those that were written."""

    snapshot: str


@dataclass(frozen=True)
class MixtureMember:
    """A snapshot's weight in a mixture."""

    policy: str
    weight: float


@dataclass(frozen=True)
class MixtureSolved:
    """The mixture over snapshots that is best as a whole was solved again.

    Fields:
      members: heaviest first. exploitability: win rate over a half that the best snapshot has against it.
      games, num_snapshots: games between frozen policies and snapshots that it rests on.
    """

    members: tuple[MixtureMember, ...]
    exploitability: float
    games: int
    num_snapshots: int


@dataclass(frozen=True)
class LeagueForked:
    """The events before this one were taken over from another run.

    Fields:
      run: that run. event, chain: the last event taken over, and its chain hash.
      lost: players whose restart state was no longer kept there: they continue from the snapshot they descend from.
    """

    run: str
    event: int
    chain: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeagueRewound:
    """The run was taken back: the events that once followed the one before this are no longer part of it.

    Fields:
      event, chain: the last event kept, and its chain hash. ended, ended_chain: where the journal ended before.
      token: of the last start that is gone with them, so that no later start takes it again.
      set_aside: folder in the run where the whole journal of before lies.
      lost: players whose restart state was no longer kept: they continue from the snapshot they descend from.
    """

    event: int
    chain: str
    ended: int
    ended_chain: str
    token: int
    set_aside: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfigChange:
    """One key of the configuration that got another value; old and new as JSON."""

    key: str
    old: str
    new: str


@dataclass(frozen=True)
class ConfigChanged:
    """The run has this configuration from here on; the first one is that of its start.

    Fields:
      text: of config.yaml, the resolved configuration. changes: what differs from the one before.
      by: user and machine that changed it.
    """

    text: str
    changes: tuple[ConfigChange, ...] = ()
    by: str = ""


@dataclass(frozen=True)
class SettingsChanged:
    """Settings of the running league have other values from here on.

    Fields:
      changes: by dotted key, see `league.core.settings`. text: of config.yaml with them; empty where it has none of
        these keys.
      by: who changed it: a user and machine, or the run itself. reason: for people.
      undoes: number of the event whose changes this one takes back; 0 for none.
      remedy: name of the remedy where the league changes itself, see `league.core.adapting`; else empty.
    """

    changes: tuple[ConfigChange, ...]
    text: str = ""
    by: str = ""
    reason: str = ""
    undoes: int = 0
    remedy: str = ""


Event = (
    LeagueCreated
    | PlayerAdded
    | RunStarted
    | RunStopped
    | LeaseGranted
    | LeaseFinished
    | LeaseExpired
    | ProgressReported
    | DirectiveIssued
    | SnapshotAdded
    | PlayerReset
    | CheckpointSaved
    | PlayerTransplanted
    | DirectiveDropped
    | PolicyImported
    | SnapshotQuarantined
    | SnapshotRestored
    | SnapshotRetired
    | MixtureSolved
    | LeagueForked
    | LeagueRewound
    | ConfigChanged
    | SettingsChanged
    | ProbeBegun
    | ProbeSpent
    | ProbeEnded
)

EVENTS: dict[str, type[Event]] = {
    "LeagueCreated": LeagueCreated,
    "PlayerAdded": PlayerAdded,
    "RunStarted": RunStarted,
    "RunStopped": RunStopped,
    "LeaseGranted": LeaseGranted,
    "LeaseFinished": LeaseFinished,
    "LeaseExpired": LeaseExpired,
    "ProgressReported": ProgressReported,
    "DirectiveIssued": DirectiveIssued,
    "SnapshotAdded": SnapshotAdded,
    "PlayerReset": PlayerReset,
    "CheckpointSaved": CheckpointSaved,
    "PlayerTransplanted": PlayerTransplanted,
    "DirectiveDropped": DirectiveDropped,
    "PolicyImported": PolicyImported,
    "SnapshotQuarantined": SnapshotQuarantined,
    "SnapshotRestored": SnapshotRestored,
    "SnapshotRetired": SnapshotRetired,
    "MixtureSolved": MixtureSolved,
    "LeagueForked": LeagueForked,
    "LeagueRewound": LeagueRewound,
    "ConfigChanged": ConfigChanged,
    "SettingsChanged": SettingsChanged,
    "ProbeBegun": ProbeBegun,
    "ProbeSpent": ProbeSpent,
    "ProbeEnded": ProbeEnded,
}
"""Kind written in the journal -> its class. Kinds are for ever: a journal of last year must still be readable."""

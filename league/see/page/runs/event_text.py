"""Events of the journal as sentences for people."""

from __future__ import annotations

import re

from league.core.state import events as kinds
from league.core.state.events import ConfigChange, Event
from league.core.state.probe_events import ProbeBegun, ProbeEnded, ProbeSpent
from league.core.state.records import DirectiveKind
from league.envs.text.number_text import number_text
from league.wording import counted

MAX_CHANGES = 4
"""Settings that the sentence on a change names."""

_INTENDED = {
    DirectiveKind.SNAPSHOT: "is to be frozen",
    DirectiveKind.RESET: "is to start again",
    DirectiveKind.TRANSPLANT: "is to continue from another player",
}
_SWITCHES = {
    "league_state.training_paused": ("Training is taken up again", "Training is paused"),
    "league_state.rating_paused": ("Rating matches are taken up again", "Rating matches are paused"),
}
"""Key -> words for false and for true."""
_OF_PLAYER = {"paused": ("learns again", "is paused"), "retired": ("is back", "is retired")}
_PLAYER = re.compile(r"players\.(?P<name>.+)\.(?P<key>[a-z_]+)")
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def event_text(event: Event) -> str:
    """One sentence."""
    return next(
        (text for part in (_of_runs, _of_leases, _of_members, _of_policies, _of_changes) if (text := part(event))),
        f"{_CAPITALS.sub(' ', type(event).__name__).capitalize()}.",
    )


def change_text(changes: tuple[ConfigChange, ...]) -> str:
    """Changed settings in words, without a full stop."""
    text = ", ".join(_one_change(change) for change in changes[:MAX_CHANGES])
    return text + (f" and {len(changes) - MAX_CHANGES} more" if len(changes) > MAX_CHANGES else "")


def _one_change(change: ConfigChange) -> str:
    is_on = change.new == "true"
    if change.key in _SWITCHES:
        return _SWITCHES[change.key][is_on]
    if change.key.startswith("tags."):
        tag, named = change.key.removeprefix("tags."), change.new.strip('"')
        return f"tag {tag} is removed" if named == "null" else f"{named} is tagged {tag}"
    found = _PLAYER.fullmatch(change.key)
    if found is None:
        return f"{change.key} from {_value(change.old)} to {_value(change.new)}"
    if found["key"] in _OF_PLAYER:
        return f"{found['name']} {_OF_PLAYER[found['key']][is_on]}"
    return f"{found['key']} of {found['name']} from {_value(change.old)} to {_value(change.new)}"


def _value(text: str) -> str:
    return "unset" if text in ("null", "") else text if len(text) <= 40 else f"{text[:37]}..."


def _of_runs(event: Event) -> str:
    match event:
        case kinds.LeagueCreated():
            return f"The league was made, for {counted(event.num_seats, 'seat')}."
        case kinds.RunStarted():
            return "A daemon took up the run."
        case kinds.RunStopped():
            return f"The run stopped: {event.reason}."
        case kinds.LeagueForked():
            return f"The league was forked from {event.run} at event {event.event:,}."
        case kinds.LeagueRewound():
            return f"The league was taken back to event {event.event:,}."
        case ProbeBegun():
            return f"Probe {event.task.probe} of {event.task.snapshot} begins."
        case ProbeSpent():
            return f"Probe {event.number} has used {number_text(event.core_seconds, 3)} core-seconds so far."
        case ProbeEnded():
            found = ", ".join(f"{one.yardstick} {number_text(one.value, 3)}" for one in event.outcome.readings)
            return f"A probe ended: {found or event.outcome.problem or 'nothing was measured'}."
    return ""


def _of_leases(event: Event) -> str:
    match event:
        case kinds.LeaseGranted():
            lease = event.lease
            purpose = f"games for {lease.home}" if lease.home else "rating matches"
            return f"{lease.host} takes lease {lease.lease_id:,}: {purpose}."
        case kinds.LeaseFinished():
            return f"Lease {event.lease_id:,} came back with {counted(event.env_steps, 'env step')}."
        case kinds.LeaseExpired():
            return f"Lease {event.lease_id:,} was lost: {event.reason}."
        case kinds.ProgressReported():
            known = event.progress
            return f"{known.player} has made {counted(known.version, 'update')} of {known.trained_steps:,} steps."
        case kinds.CheckpointSaved():
            return f"A restart state of {event.player} was saved after {counted(event.version, 'update')}."
    return ""


def _of_members(event: Event) -> str:
    match event:
        case kinds.PlayerAdded():
            origin = f", from {event.parent}" if event.parent else ""
            return f"{event.player} joins as {event.role.replace('_', ' ')}{origin}."
        case kinds.DirectiveIssued():
            hardest = event.evidence[0] if event.evidence else None
            evidence = f"; hardest opponent {hardest.opponent}, beaten with {hardest.mean:.2f}" if hardest else ""
            return f"{event.directive.player} {_INTENDED[event.directive.kind]} ({event.directive.reason}){evidence}."
        case kinds.DirectiveDropped():
            return f"Directive {event.directive_id} was dropped: {event.reason}."
        case kinds.PlayerReset():
            return f"{event.player} starts again from {event.source}."
        case kinds.PlayerTransplanted():
            values = ", ".join(f"{item.name} {number_text(item.value, 4)}" for item in event.hyperparameters)
            return f"{event.player} continues from {event.donor}" + (f" with {values}." if values else ".")
    return ""


def _of_policies(event: Event) -> str:
    match event:
        case kinds.SnapshotAdded():
            known = event.snapshot
            return f"{known.snapshot_id} was taken after {known.trained_steps:,} trained steps ({known.reason})."
        case kinds.PolicyImported():
            return f"{event.snapshot.snapshot_id} joins from outside."
        case kinds.SnapshotQuarantined():
            return f"{event.snapshot} was set aside: {event.reason}."
        case kinds.SnapshotRetired():
            return f"{event.snapshot} is met no more: {event.reason}."
        case kinds.SnapshotRestored():
            return f"{event.snapshot} is met again."
        case kinds.MixtureSolved():
            return f"A mixture of {counted(len(event.members), 'policy', 'policies')} was solved."
    return ""


def _of_changes(event: Event) -> str:
    match event:
        case kinds.SettingsChanged():
            by = f", by {event.by}" if event.by else ""
            reason = f": {event.reason.rstrip('.')}" if event.reason else ""
            text = change_text(event.changes)
            return f"{text[:1].upper()}{text[1:]}{by}{reason}."
        case kinds.ConfigChanged():
            by = f" by {event.by}" if event.by else ""
            return (
                f"The configuration was changed{by}: {change_text(event.changes)}."
                if event.changes
                else (f"The configuration was noted{by}.")
            )
    return ""

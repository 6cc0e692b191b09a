"""Plans of operations on marks: tags and pins of snapshots, see `league.core.marks`."""

from __future__ import annotations

from dataclasses import replace

from league.operations.plans import OperationRefused, Plan, Situation, plan_set
from league.policies.select import UnknownPolicy, choose


def plan_tag(now: Situation, snapshot: str, tag: str) -> Plan:
    """A snapshot gets a name."""
    name = _snapshot_of(now, snapshot)
    plan = plan_set(now, [(f"tags.{tag}", name)])
    return replace(plan, words=f"tags {name} as {tag}")


def plan_untag(now: Situation, tag: str) -> Plan:
    """A tag is taken away."""
    if tag not in now.state.tags:
        raise OperationRefused(f"there is no tag {tag!r}; there are {', '.join(now.state.tags) or 'none'}")
    plan = plan_set(now, [(f"tags.{tag}", None)])
    return replace(plan, words=f"takes the tag {tag} from {now.state.tags[tag]}")


def plan_pin(now: Situation, snapshot: str, *, value: bool) -> Plan:
    """A snapshot is kept, or no longer."""
    name = _snapshot_of(now, snapshot)
    if (name in now.state.pins) == value:
        raise OperationRefused(f"{name} is {'' if value else 'not '}pinned already")
    plan = plan_set(now, [(f"pins.{name}", value)])
    return replace(plan, words=f"{'pins' if value else 'unpins'} {name}")


def _snapshot_of(now: Situation, name: str) -> str:
    """The one snapshot that a name stands for.

    Raises:
      OperationRefused: it stands for none or several, or for a learner's restart state.
    """
    if name in now.state.players:
        of_player = [known for known, info in now.state.snapshots.items() if info.player == name]
        if not of_player:
            raise OperationRefused(f"{name} has no snapshot yet; take one with `league snapshot`")
        return of_player[-1]
    try:
        chosen = choose(now.state, name)
    except UnknownPolicy as error:
        raise OperationRefused(str(error)) from error
    if chosen.checkpoint is not None or chosen.is_drawn or len(chosen.members) != 1:
        raise OperationRefused(f"{name} stands for no single snapshot; name one")
    return chosen.members[0][1].snapshot_id

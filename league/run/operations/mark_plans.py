"""Plans of operations on marks: tags and pins of snapshots, see `league.core.marks`."""

from __future__ import annotations

from dataclasses import replace

from league.policies.select import UnknownPolicy, choose
from league.run.operations.plans import OperationRefused, Plan, PlanInputs, plan_set


def plan_tag(inputs: PlanInputs, snapshot: str, tag: str) -> Plan:
    """A snapshot gets a name."""
    name, holder = _snapshot_of(inputs, snapshot), inputs.state.tags.get(tag)
    if holder is not None:
        raise OperationRefused(f"{tag} is {holder} already; remove that tag first")
    plan = plan_set(inputs, [(f"tags.{tag}", name)])
    return replace(plan, words=f"tags {name} as {tag}")


def plan_untag(inputs: PlanInputs, tag: str) -> Plan:
    """A tag is taken away."""
    if tag not in inputs.state.tags:
        raise OperationRefused(f"there is no tag {tag!r}; there are {', '.join(inputs.state.tags) or 'none'}")
    plan = plan_set(inputs, [(f"tags.{tag}", None)])
    return replace(plan, words=f"takes the tag {tag} from {inputs.state.tags[tag]}")


def plan_pin(inputs: PlanInputs, snapshot: str, *, value: bool) -> Plan:
    """A snapshot is kept, or no longer."""
    name = _snapshot_of(inputs, snapshot)
    if (name in inputs.state.pins) == value:
        raise OperationRefused(f"{name} is {'' if value else 'not '}pinned already")
    plan = plan_set(inputs, [(f"pins.{name}", value)])
    return replace(plan, words=f"{'pins' if value else 'unpins'} {name}")


def _snapshot_of(inputs: PlanInputs, name: str) -> str:
    """The one snapshot that a name stands for.

    Raises:
      OperationRefused: it stands for none or several, or for a learner's restart state.
    """
    if name in inputs.state.players:
        of_player = [known for known, info in inputs.state.snapshots.items() if info.player == name]
        if not of_player:
            raise OperationRefused(f"{name} has no snapshot yet; take one with `league snapshot`")
        return of_player[-1]
    try:
        chosen = choose(inputs.state, name)
    except UnknownPolicy as error:
        raise OperationRefused(str(error)) from error
    if chosen.checkpoint is not None:
        raise OperationRefused(
            f"{name} stands for {chosen.reason}, which is no snapshot; take one with `league snapshot` and name it"
        )
    if chosen.is_drawn:
        raise OperationRefused(
            f"{name} stands for a mixture, of which a snapshot is drawn for each game; name one of them, as "
            f"{chosen.members[0][1].snapshot_id}"
        )
    return chosen.members[0][1].snapshot_id

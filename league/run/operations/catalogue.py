"""The operations on a running league: names, typed arguments, what each does in words, and its plan."""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from league.core.league import apply, decide
from league.core.state.commands import Command, Refused
from league.core.state.state import LeagueState
from league.envs.text.number_text import number_text
from league.run.operations.host_plans import plan_actor_hosts, plan_drain, plan_park, plan_unpark
from league.run.operations.mark_plans import plan_pin, plan_tag, plan_untag
from league.run.operations.plans import (
    OperationRefused,
    Plan,
    PlanInputs,
    plan_add,
    plan_flag,
    plan_freeze,
    plan_gc,
    plan_reset,
    plan_set,
    plan_snapshots,
    plan_undo,
)

Kind = Literal["text", "number", "integer", "json"]
Value = object
"""Of an argument: text, a number, or for "json" any plain value."""

BUDGETS = ("seconds", "core_seconds", "env_steps")


@dataclass(frozen=True)
class Argument:
    """An argument of an operation.

    Fields:
      name: key. kind: its type. what: its meaning, for help texts.
      default: taken where it is not given; None where it must be given and `is_required` says so.
    """

    name: str
    kind: Kind
    what: str
    is_required: bool = True
    default: Value = None


@dataclass(frozen=True)
class Operation:
    """An operation on a running league.

    Fields:
      name: as in `league set`, and in the control door. what: one sentence for help texts.
      arguments: in order. plan: makes the commands out of complete arguments.
      is_undoable: whether `undo` takes it back.
    """

    name: str
    what: str
    arguments: tuple[Argument, ...]
    plan: Callable[[PlanInputs, Mapping[str, Value]], Plan]
    is_undoable: bool = True


HOST = Argument("host", "text", "an actor host, as `league hosts` names it")
PLAYER = Argument("player", "text", "a player's id, or a role for all its players")


def _set(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    return plan_set(inputs, [(str(given["key"]), given["value"])])


def _extend(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    limit, amount = str(given["limit"]), given["amount"]
    assert isinstance(amount, int | float)
    if limit not in BUDGETS:
        raise OperationRefused(f"limit is one of {', '.join(BUDGETS)}, not {limit!r}")
    present = getattr(inputs.config.budget, limit)
    if present is None:
        raise OperationRefused(f"budget.{limit} is no limit of this run; set budget.{limit} to make it one")
    total = present + amount
    if total < 0:
        raise OperationRefused(
            f"budget.{limit} is {number_text(present, 9)}; {number_text(-amount, 9)} cannot be cut from it"
        )
    return plan_set(inputs, [(f"budget.{limit}", int(total) if limit == "env_steps" else float(total))])


def _pause(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    return _paused(inputs, str(given["what"]), value=True)


def _unpause(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    return _paused(inputs, str(given["what"]), value=False)


def _paused(inputs: PlanInputs, what: str, *, value: bool) -> Plan:
    if what in ("training", "rating"):
        if (inputs.state.training_paused if what == "training" else inputs.state.rating_paused) == value:
            raise OperationRefused(f"{what} is {'paused already' if value else 'not paused'}")
        words = f"pauses {what}" if value else f"takes up {what} again"
        return replace(plan_set(inputs, [(f"league_state.{what}_paused", value)]), words=words)
    return plan_flag(inputs, what, "paused", value=value, words="pauses" if value else "takes up again")


def _retire(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    return plan_flag(inputs, str(given["player"]), "retired", value=True, words="freezes and retires")


def _admit(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    from league.policies.imported import policies_from_outside
    from league.run.operations.admit_plan import plan_admit  # loads torch, which no other operation needs

    probability = given["probability"]
    assert isinstance(probability, int | float)
    return plan_admit(
        inputs,
        policies_from_outside,
        source=str(given["source"]),
        name=str(given["name"]),
        player=str(given["player"]),
        probability=float(probability),
        role=str(given["role"]),
    )


def _actor_hosts(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    number = given["number"]
    assert isinstance(number, int)
    return plan_actor_hosts(inputs, number)


def _add(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    weight = given["step_weight"]
    assert weight is None or isinstance(weight, int | float)
    return plan_add(inputs, str(given["role"]), parent=str(given["parent"]), step_weight=weight)


def _gc(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    keep = given["keep"]
    assert keep is None or isinstance(keep, int)
    return plan_gc(inputs, inputs.config.retention.snapshots if keep is None else keep)


def _undo(inputs: PlanInputs, given: Mapping[str, Value]) -> Plan:
    number = given["event"]
    assert isinstance(number, int)
    return plan_undo(inputs, number)


_LISTED = (
    Operation(
        "set",
        "Changes a setting: a key of the configuration, or players.NAME.KEY of one player (paused, step_weight, "
        "learning_rate and entropy_cost as factors, pfsp_exponent, self_play).",
        (Argument("key", "text", "dotted key"), Argument("value", "json", "its new value")),
        _set,
    ),
    Operation(
        "extend",
        "Adds to a limit of the budget, or cuts from it.",
        (
            Argument("limit", "text", f"one of {', '.join(BUDGETS)}"),
            Argument("amount", "number", "what is added; a negative number cuts"),
        ),
        _extend,
    ),
    Operation(
        "pause",
        "Stops training, rating, or the learning of players; what is in hand ends first.",
        (Argument("what", "text", "training, rating, a player's id or a role"),),
        _pause,
    ),
    Operation(
        "unpause",
        "Takes up again what was paused.",
        (Argument("what", "text", "training, rating, a player's id or a role"),),
        _unpause,
    ),
    Operation(
        "snapshot",
        "Freezes the weights of players as they are now.",
        (Argument("player", "text", "a player's id or a role; every active player if left out", False, ""),),
        lambda inputs, given: plan_snapshots(inputs, str(given["player"])),
        is_undoable=False,
    ),
    Operation(
        "reset",
        "Freezes a player, and lets it start again from where its role does.",
        (Argument("player", "text", "a player's id"),),
        lambda inputs, given: plan_reset(inputs, str(given["player"])),
        is_undoable=False,
    ),
    Operation(
        "freeze",
        "Takes a snapshot of players and ends their learning; they are still met as opponents.",
        (PLAYER,),
        lambda inputs, given: plan_freeze(inputs, str(given["player"])),
    ),
    Operation(
        "retire",
        "Takes players out of the league: a last snapshot of each stays, the player itself is met no more.",
        (PLAYER,),
        _retire,
    ),
    Operation(
        "add",
        "Adds a player of a role.",
        (
            Argument("role", "text", "a role, or the first part of the ids of a group"),
            Argument("parent", "text", "snapshot that it starts from; new weights if left out", False, ""),
            Argument("step_weight", "number", "weight of its env steps; only for a role that is new here", False),
        ),
        _add,
        is_undoable=False,
    ),
    Operation(
        "admit",
        "Takes a frozen policy from outside into the league, as a fixed opponent that is rated.",
        (
            Argument("source", "text", "path on the daemon's machine of a run folder, or that of one snapshot"),
            Argument("name", "text", "its name here"),
            Argument("player", "text", "whom of that run, as for `league eval`", False, "best"),
            Argument("probability", "number", "fraction of the games of each player that meets it", False, 0.05),
            Argument("role", "text", "the role that meets it; every one if left out", False, ""),
        ),
        _admit,
    ),
    Operation(
        "tag",
        "Gives a snapshot a name, by which it can be asked for everywhere; its weights stay.",
        (
            Argument("snapshot", "text", "a snapshot, or what stands for one, such as best or a player's id"),
            Argument("name", "text", "the tag, such as release-3"),
        ),
        lambda inputs, given: plan_tag(inputs, str(given["snapshot"]), str(given["name"])),
    ),
    Operation(
        "untag",
        "Takes a name from a snapshot.",
        (Argument("name", "text", "the tag"),),
        lambda inputs, given: plan_untag(inputs, str(given["name"])),
    ),
    Operation(
        "pin",
        "Keeps the weights of a snapshot, whatever the limits of retention.",
        (Argument("snapshot", "text", "a snapshot, or what stands for one, such as best or a player's id"),),
        lambda inputs, given: plan_pin(inputs, str(given["snapshot"]), value=True),
    ),
    Operation(
        "unpin",
        "Lets retention remove the weights of a snapshot again.",
        (Argument("snapshot", "text", "a snapshot"),),
        lambda inputs, given: plan_pin(inputs, str(given["snapshot"]), value=False),
    ),
    Operation(
        "actor_hosts",
        "Changes the number of actor hosts; those that leave end with the lease in hand.",
        (Argument("number", "integer", "how many there are to be"),),
        _actor_hosts,
    ),
    Operation(
        "park",
        "Gives an actor host no further lease; its process stays.",
        (HOST,),
        lambda inputs, given: plan_park(inputs, str(given["host"])),
    ),
    Operation(
        "unpark",
        "Lets a parked actor host work again.",
        (HOST,),
        lambda inputs, given: plan_unpark(inputs, str(given["host"])),
    ),
    Operation(
        "drain",
        "Ends an actor host with the lease in hand, or a learner host once the others can take its players.",
        (HOST,),
        lambda inputs, given: plan_drain(inputs, str(given["host"])),
    ),
    Operation(
        "gc",
        "Removes the weights of the snapshots that the league needs least; their records, games and ratings stay.",
        (
            Argument(
                "keep", "integer", "how many snapshots may keep their weights; retention.snapshots if left out", False
            ),
        ),
        _gc,
        is_undoable=False,
    ),
    Operation(
        "undo",
        "Takes back the changes of an event, where nothing has changed them again since.",
        (Argument("event", "integer", "number of the event in the journal"),),
        _undo,
    ),
)
OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _LISTED}
"""Name -> operation."""


def plan_of(name: str, arguments: Mapping[str, Value], inputs: PlanInputs) -> Plan:
    """The plan of an operation; nothing is done yet.

    Raises:
      OperationRefused: no such operation or argument, or it does not fit the league as it stands.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        near = difflib.get_close_matches(name, OPERATIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OPERATIONS)}."
        raise OperationRefused(f"there is no operation {name!r}; {hint}")
    given = complete(operation, arguments)
    try:
        plan = operation.plan(inputs, given)
        rehearse(inputs.state, plan.commands)
    except Refused as error:
        raise OperationRefused(str(error)) from error
    return plan


def complete(operation: Operation, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments of an operation, each of its type, with the defaults of those left out.

    Raises:
      OperationRefused: one is unknown, missing or of another type.
    """
    known = {argument.name: argument for argument in operation.arguments}
    for name in arguments:
        if name not in known:
            takes = ", ".join(known) or "no arguments"
            raise OperationRefused(f"{operation.name} has no argument {name!r}; it takes {takes}")
    given: dict[str, Value] = {}
    for argument in operation.arguments:
        if argument.name not in arguments:
            if argument.is_required:
                raise OperationRefused(f"{operation.name} needs {argument.name}: {argument.what}")
            given[argument.name] = argument.default
            continue
        value = arguments[argument.name]
        if not _fits(argument.kind, value):
            raise OperationRefused(f"{operation.name}: {argument.name} must be of type {argument.kind}, not {value!r}")
        given[argument.name] = value
    return given


def _fits(kind: Kind, value: Value) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "json":
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and (kind == "number" or isinstance(value, int))


def rehearse(state: LeagueState, commands: Sequence[Command]) -> None:
    """Decide on commands one after the other, each after those before it; the state stays as it is.

    Raises:
      Refused: one of them does not fit the league as it stands.
    """
    rng, later = np.random.default_rng(0), state
    for number, command in enumerate(commands):
        if number == 1:  # a copy is dear, and most plans are one command
            later = copy.deepcopy(state)
            for event in decide(later, commands[0], rng):
                apply(later, event)
        events = decide(later, command, rng)
        if later is not state:
            for event in events:
                apply(later, event)

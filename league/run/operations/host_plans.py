"""Plans of operations on hosts: park, drain, and their number."""

from __future__ import annotations

from dataclasses import replace

from league.core.marks import DRAINED, PARKED, WORKING
from league.run.operations.plans import OperationRefused, Plan, PlanInputs, plan_set

LEARNER_HOSTS = "runtime.learner_hosts"

FOLLOWS = "runtime.actor_hosts follows the machines of the cluster"


def plan_park(inputs: PlanInputs, host: str) -> Plan:
    """A host is given no further lease."""
    _require_actor_host(inputs, host)
    _require_others(inputs, host)
    return replace(plan_set(inputs, [(f"hosts.{host}", PARKED)]), words=f"parks {host}")


def plan_unpark(inputs: PlanInputs, host: str) -> Plan:
    """A parked host is given leases again."""
    _require_actor_host(inputs, host)
    state = inputs.state.hosts.get(host, WORKING)
    if state == DRAINED:
        raise OperationRefused(f"{host} is drained and ends; raise the number of actor hosts instead")
    if state == WORKING:
        raise OperationRefused(f"{host} is not parked")
    return replace(plan_set(inputs, [(f"hosts.{host}", WORKING)]), words=f"lets {host} work again")


def plan_drain(inputs: PlanInputs, host: str) -> Plan:
    """An actor host ends with the lease in hand, a learner host once its players are saved; there is one fewer."""
    if inputs.state.hosts.get(host) == DRAINED:
        raise OperationRefused(f"{host} is drained already")
    if host in inputs.learner_hosts:
        return _plan_drain_learner(inputs, host)
    _require_actor_host(inputs, host)
    _require_others(inputs, host)
    pairs: list[tuple[str, object]] = [(f"hosts.{host}", DRAINED)]
    number = inputs.config.runtime.actor_hosts
    if number:
        pairs.append(("runtime.actor_hosts", number - 1))
    return replace(plan_set(inputs, pairs), words=f"drains {host}")


def plan_actor_hosts(inputs: PlanInputs, number: int) -> Plan:
    """There are to be so many actor hosts."""
    if not inputs.config.runtime.actor_hosts:
        raise OperationRefused(f"{FOLLOWS}; add or remove machines there")
    if number < 1:
        raise OperationRefused("a run needs one actor host at least; pause training instead")
    parked = [name for name in inputs.hosts if inputs.state.hosts.get(name) == PARKED]
    if inputs.hosts[:number] and all(name in parked for name in inputs.hosts[:number]):
        raise OperationRefused(f"{', '.join(parked)} would be all that is left, and are parked; unpark one first")
    return plan_set(inputs, [("runtime.actor_hosts", number)])


def _plan_drain_learner(inputs: PlanInputs, host: str) -> Plan:
    if not any(inputs.state.hosts.get(name) != DRAINED for name in inputs.learner_hosts if name != host):
        raise OperationRefused(f"{host} is the only learner host and holds every player; pause those instead")
    if inputs.config.learner.pipeline.num_workers:
        raise OperationRefused(
            f"{host} has workers for the stages or replicas of its players, which cannot move while the run goes; "
            f"stop it, then `league resume RUN -s {LEARNER_HOSTS}=N`"
        )
    pairs: list[tuple[str, object]] = [(f"hosts.{host}", DRAINED)]
    pairs.append((LEARNER_HOSTS, inputs.config.runtime.learner_hosts - 1))
    plan = plan_set(inputs, pairs, allowed=LEARNER_HOSTS)
    return replace(plan, words=f"drains {host}; the other learner hosts take its players", is_undoable=False)


def _require_actor_host(inputs: PlanInputs, host: str) -> None:
    if host in inputs.learner_hosts:
        raise OperationRefused(f"{host} holds players and cannot be parked; pause those, or drain the host")
    if host not in inputs.hosts:
        names = ", ".join((*inputs.hosts, *inputs.learner_hosts))
        raise OperationRefused(f"no host {host!r}; there are {names or 'none'}")


def _require_others(inputs: PlanInputs, host: str) -> None:
    if not any(name not in inputs.state.hosts for name in inputs.hosts if name != host):
        raise OperationRefused("no actor host would work any more; pause training instead")

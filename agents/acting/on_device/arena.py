"""The arena of games on a device: as `league.agents.acting.arena`, but nothing leaves the device inside an unroll.

Shape letters: N games, S seats, K slots that act in one turn, A assignments of the table, M policies, C core state
size. Row of a slot = game * S + seat.

One step decides, records, steps the games, observes, counts those that ended and draws assignments for those that
begin, always with the same shapes. So a GPU replays it as one graph. The host looks at the device once in T steps, for
the number of whole unrolls, and once in a lease, for the outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from league.agents.acting.network_policy import NetworkPolicy, sample_actions
from league.agents.acting.on_device.device_seats import DeviceSeats
from league.agents.acting.on_device.outcomes import DeviceOutcomes
from league.agents.acting.on_device.policies import DevicePolicies, size_of_set
from league.agents.acting.on_device.recorder import DeviceRecorder
from league.agents.acting.on_device.step_graph import StepGraph
from league.agents.acting.outcome_counter import AssignmentTotals
from league.agents.acting.policy import NotFiniteError, Policy
from league.agents.acting.seating import AssignmentLike
from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceGame, DeviceTurn
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.unroll.unroll import UnrollSpec
from league.envs.failures import GameFailure


class DeviceArena:
    """N games of one kind, stepped in lockstep, with policies in their seats.

    Args:
      game: the games.
      unrolls: spec of the recorded unrolls.
      device: where everything is.
      seed: of the assignments and the sampled actions.
    """

    def __init__(self, game: DeviceGame, unrolls: UnrollSpec, *, device: torch.device, seed: int) -> None:
        count, self._seats = game.num_envs, game.spec.num_seats
        self._game, self._unrolls, self._device = game, unrolls, device
        self._draws = Draws(seed, device=device)
        self._turn = _owned(game.reset())
        self._each = len(self._turn.rows) // count  # decisions of a game in one step
        rows = count * self._seats
        self._recorder = DeviceRecorder(unrolls, num_rows=rows, device=device)
        self._outcomes = DeviceOutcomes(game.spec.teams, device=device)
        self._core = torch.zeros(rows, unrolls.core_size, device=device)
        self._decisions = torch.zeros(count, dtype=torch.int64, device=device)
        self._is_finite = torch.ones((), dtype=torch.bool, device=device)
        self._seating = DeviceSeats(count, self._seats, device=device)
        self._use_tables()

    @property
    def num_envs(self) -> int:
        """N."""
        return self._game.num_envs

    def run(
        self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy], *, steps: int
    ) -> Iterator[DeviceUnrolls]:
        """Step every game `steps` times under a table of assignments; yields unrolls after every T steps.

        Args:
          assignments: table from which each new episode draws.
          policies: those named in the table, networks of one architecture on the device. Games in flight keep the
            objects from their start.
        Raises:
          NotFiniteError: a network answers what is no number.
        """
        self._take_table(assignments, policies)
        left = steps
        while left:
            count = min(self._unrolls.unroll_length, left)
            left -= count
            done = self._play(count)
            if done is not None:
                yield done

    def take_outcomes(self) -> tuple[AssignmentTotals, ...]:
        """Totals of the episodes that ended since the last call, which is due before another table is taken."""
        return self._outcomes.take([assignment.policies for assignment in self._seating.assignments])

    def take_failures(self) -> tuple[GameFailure, ...]:
        """None: games on a device do not fail one by one."""
        return ()

    def settle(self) -> None:
        """Nothing is on its way between two steps."""

    def close(self) -> None:
        """Nothing to release."""

    @torch.no_grad()
    def _play(self, count: int) -> DeviceUnrolls | None:
        """Make so many steps, at most T; returns the unrolls that became complete."""
        self._acting.refresh()
        for _ in range(count):
            self._graph.run()
        done = self._recorder.take()
        if not self._is_finite:
            raise NotFiniteError(
                f"{self._game.spec.env_id}: a network answers what is no number: its weights have grown beyond bounds; "
                "lower learner.learning_rate"
            )
        return done

    @torch.no_grad()
    def _take_table(self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy]) -> None:
        """Take a table, from which new episodes draw."""
        size = self._seating.size
        are_playing = self._seating.take_table(assignments, policies)
        if self._seating.size != size:
            self._use_tables()
        self._seat_networks()
        if not are_playing:
            everywhere = torch.ones(self.num_envs, dtype=torch.bool, device=self._device)
            self._seating.draw(everywhere, self._draws.uniforms(self.num_envs))
            self._observe()

    def _seat_networks(self) -> None:
        """Give the policies to the set of networks of their number; its graph, once recorded, serves all such sets."""
        networks = [policy for policy in self._seating.policies.values() if isinstance(policy, NetworkPolicy)]
        assert len(networks) == len(self._seating.policies), "a policy without a network on a device"
        size = size_of_set(networks[0].network, len(networks))
        if size not in self._sets:
            slots, first = len(self._turn.rows), networks[0].network
            acting = DevicePolicies(first, size=size, num_slots=slots, device=self._device)
            self._sets[size] = acting, StepGraph(self._step, device=self._device)
        self._acting, self._graph = self._sets[size]
        self._acting.seat(networks)

    def _use_tables(self) -> None:
        """Use the tensors of the seats as they are now; graphs that hold others are dropped."""
        self._sets: dict[int, tuple[DevicePolicies, StepGraph]] = {}
        self._outcomes.resize(self._seating.size)

    def _step(self) -> None:
        """One step of all games, in place: decide, step the games, and observe what they show then."""
        turn = self._turn
        rows, holders, records = (
            turn.rows,
            self._seating.policy_of.view(-1)[turn.rows],
            self._seating.records.view(-1)[turn.rows],
        )
        core = self._core[rows]
        output = self._acting.step(turn.obs, core=core, action_mask=turn.action_mask, holders=holders)
        head, count = self._acting.head, self.num_envs
        uniforms = self._draws.uniforms(count + len(rows) * head.num_noise)  # of the assignments, then of the actions
        actions, log_probs, _ = sample_actions(head, output.logits, uniforms[count:].view(len(rows), -1))
        self._is_finite.logical_and_(torch.isfinite(log_probs).all())
        self._core[rows] = output.core
        versions = self._acting.versions[holders]
        self._recorder.act(rows, records, actions=actions, log_probs=log_probs, versions=versions)
        self._decisions.add_(self._each)
        self._arrive(self._game.step(actions), uniforms[:count])
        self._observe()

    def _arrive(self, turn: DeviceTurn, uniforms: Tensor) -> None:
        """Take the next turn, with the episodes that ended in the step. uniforms: float32 [N], for new assignments."""
        ended = turn.terminated
        # Count ended episodes before new assignments are drawn.
        self._outcomes.add(self._seating.assignment_of, ended=ended, returns=turn.returns, decisions=self._decisions)
        ended_rows = ended.unsqueeze(1).expand(-1, self._seats).reshape(-1)
        self._recorder.end(ended_rows, rewards=turn.rewards.reshape(-1))
        self._core.masked_fill_(ended_rows.unsqueeze(1), 0.0)
        self._decisions.masked_fill_(ended, 0)
        self._seating.draw(ended, uniforms)
        for mine, new in zip(self._turn.tensors(), turn.tensors(), strict=True):
            mine.copy_(new)

    def _observe(self) -> None:
        """Record what the present turn shows."""
        turn, rows = self._turn, self._turn.rows
        self._recorder.observe(
            rows,
            self._seating.records.view(-1)[rows],
            obs=turn.obs,
            action_mask=turn.action_mask,
            rewards=turn.rewards.view(-1)[rows],
            core=self._core[rows],
        )


def _owned(turn: DeviceTurn) -> DeviceTurn:
    """A copy in memory of its own."""
    return DeviceTurn(
        rows=turn.rows.clone(),
        obs={name: values.clone() for name, values in turn.obs.items()},
        action_mask=None if turn.action_mask is None else turn.action_mask.clone(),
        rewards=turn.rewards.clone(),
        terminated=turn.terminated.clone(),
        returns=turn.returns.clone(),
    )

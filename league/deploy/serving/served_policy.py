"""A policy that decides for many games at once, each row with the state of its own.

Shape letters: K rows, A actions, C floats of core state, P dist_params.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from league.deploy.serving.wire import ActAnswer, ActRequest, State
from league.envs.protocol import EnvSpec
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.observation import batch_of_one, mask_of_one, seat_number, within_bounds

BLOCK_ROWS = 64
"""Larger batches are filled up to a multiple: the matrix library keeps a kernel for every number of rows it meets."""


class BadRequest(Exception):  # noqa: N818
    """A request does not fit the policy; one sentence says why."""


@dataclass(frozen=True)
class Row:
    """A decision to make.

    Fields:
      fields: name -> [1, ...]. mask: bool [1, A], None where all is legal. seat: number, None where it does not matter.
      core: float32 [C]. member: of the mixture. noise: uniform in [0, 1), as many as the head draws.
      greedy, probs: as in `ActRequest`. keeps_state: whether the answer is to hold the state.
    """

    fields: Mapping[str, NDArray[np.generic]]
    mask: NDArray[np.bool_] | None
    seat: int | None
    core: NDArray[np.float32]
    member: int
    noise: NDArray[np.float32]
    greedy: bool
    probs: bool
    keeps_state: bool


@dataclass(frozen=True)
class Decided:
    """An answer, and the state of the game after it."""

    answer: ActAnswer
    state: State


class ServedPolicy:
    """A policy or mixture behind the server.

    Args:
      policy: shared with nobody.
      greedy: whether it takes the likeliest action unless a request says otherwise.
      seed: of its draws.
      own_format: whether observations and actions may have the game's own format; else they are those of its spec.
    """

    def __init__(
        self, policy: LoadedPolicy | LoadedMixture, *, greedy: bool = False, seed: int = 0, own_format: bool = True
    ) -> None:
        self.name = policy.name
        self.spec: EnvSpec = policy.spec if own_format else replace(policy.spec, user_format=None)
        self.greedy = greedy
        self._networks = [member.network for _, member in policy.members]
        self._shares = np.cumsum([weight for weight, _ in policy.members])
        self._rng = np.random.default_rng(seed)
        known = [[round(weight, 12), member.digest] for weight, member in policy.members]
        self.identity = hashlib.sha256(json.dumps(known).encode()).hexdigest()
        self.core_size = max(network.core_size for network in self._networks)

    @property
    def num_members(self) -> int:
        """Policies of a mixture, else 1."""
        return len(self._networks)

    @property
    def needs_state(self) -> bool:
        """True if a game carries something from one decision to the next."""
        return self.core_size > 0 or self.num_members > 1

    def reseed(self, seed: int) -> None:
        """Restart the stream of draws."""
        self._rng = np.random.default_rng(seed)

    def first_state(self) -> State:
        """The state before the first decision of a game: no memory, and a member drawn."""
        drawn = np.searchsorted(self._shares, self._rng.random() * self._shares[-1], side="right")
        member = min(int(drawn), self.num_members - 1)
        return State([0.0] * self._networks[member].core_size, member)

    def row(self, request: ActRequest, state: State | None) -> Row:
        """The decision that a request asks for.

        Args:
          state: of its session; None where it has none.
        Raises:
          BadRequest, ObservationMismatch: it does not fit the policy.
        """
        given = request.state if state is None else state
        if given is msgspec.UNSET:
            if self.needs_state:
                raise BadRequest(
                    f'{self.name} carries a state from one decision to the next: open a session, or send "state", null '
                    "at the first decision of a game and then that of the last answer"
                )
            given = None
        known = self.first_state() if given is None else given
        assert isinstance(known, State)
        if not 0 <= known.member < self.num_members:
            raise BadRequest(f"state.member is {known.member}, {self.name} has {self.num_members} members")
        network = self._networks[known.member]
        core = np.array(known.core, np.float32)
        if core.shape != (network.core_size,) or not np.isfinite(core).all():
            raise BadRequest(f"state.core has {core.size} numbers, {network.core_size} finite ones are needed")
        if request.probs and self.spec.actions.kind != "categorical":
            raise BadRequest(f"{self.spec.env_id} has no numbered actions: none has a probability")
        rng = self._rng if request.seed is None else np.random.default_rng(abs(request.seed))
        seat = seat_number(request.observation, self.spec, request.seat)
        return Row(
            batch_of_one(request.observation, self.spec, seat=seat),
            mask_of_one(request.mask, request.observation, self.spec, seat=seat) if self.spec.has_mask else None,
            seat,
            core,
            known.member,
            rng.random(network.head.num_noise, dtype=np.float32),
            self.greedy if request.greedy is None else request.greedy,
            request.probs,
            self.needs_state and state is None,
        )

    def decide(self, rows: Sequence[Row]) -> list[Decided]:
        """The answers to all rows: one forward pass for each member of the mixture that is among them."""
        decided: list[Decided | None] = [None] * len(rows)
        for member in sorted({row.member for row in rows}):
            places = [place for place, row in enumerate(rows) if row.member == member]
            for place, one in zip(places, self._decide(member, [rows[place] for place in places]), strict=True):
                decided[place] = one
        return [one for one in decided if one is not None]

    @torch.inference_mode()
    def _decide(self, member: int, rows: Sequence[Row]) -> list[Decided]:
        network, count = self._networks[member], len(rows)
        missing = -count % BLOCK_ROWS if count > BLOCK_ROWS else 0
        filled = [*rows, *[rows[0]] * missing]
        obs = {name: torch.from_numpy(np.concatenate([row.fields[name] for row in filled])) for name in rows[0].fields}
        core = torch.from_numpy(np.stack([row.core for row in filled]))
        output = network.step(obs, core=core, action_mask=self._masks(filled))
        dist_params, head = output.logits[:count], network.head
        noise = torch.from_numpy(np.stack([row.noise for row in rows]))
        if all(row.greedy for row in rows):
            actions = head.mode(dist_params).numpy()
        else:
            actions = head.sample(dist_params, noise)[0].numpy()
            if any(row.greedy for row in rows):
                greedy = np.array([row.greedy for row in rows])
                actions = np.where(
                    greedy.reshape(-1, *[1] * (actions.ndim - 1)), head.mode(dist_params).numpy(), actions
                )
        chances = head.probabilities(dist_params) if any(row.probs for row in rows) else None
        probs = [None] * count if chances is None else chances.tolist()
        values, cores = output.values[:count].tolist(), output.core[:count].tolist()
        return [
            self._decided(rows[place], actions[place], values[place], probs[place], State(cores[place], member))
            for place in range(count)
        ]

    def _masks(self, rows: Sequence[Row]) -> torch.Tensor | None:
        if not self.spec.has_mask:
            return None
        free = np.ones((1, self.spec.actions.num_actions), np.bool_)
        return torch.from_numpy(np.concatenate([free if row.mask is None else row.mask for row in rows]))

    def _decided(
        self, row: Row, action: NDArray[np.generic], value: float, probs: list[float] | None, state: State
    ) -> Decided:
        numbered = self.spec.actions.kind == "categorical"
        plain: object = int(action) if numbered else within_bounds(self.spec, action)
        if self.spec.user_format is not None:
            plain = self.spec.user_format.write(plain, seat=row.seat)
        answer = ActAnswer(plain, value, probs if row.probs else None, state if row.keeps_state else None)
        return Decided(answer, state)

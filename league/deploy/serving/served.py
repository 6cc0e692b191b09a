"""Policies served over HTTP as contenders: `http://127.0.0.1:8421?token-file=token`, `unix:policy.sock`.

Shape letters: K slots.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, ActOutputs, Policy
from league.deploy.serving.client import PolicyClient, ServedPolicyError
from league.errors import LeagueError
from league.http.token_file import token_in
from league.judge.contenders.contender import Game, OpenConditions, UnknownContender, identity_of
from league.judge.contenders.engine import MAX_STRIKES
from league.policies.frozen import FrozenCopy

REQUESTS = 16
"""Requests at once, so that the server can answer them in batches."""
DEADLINE_S = 60.0


@dataclass(frozen=True)
class ServedContender:
    """A policy behind an address; fields as of `Contender`. facts: JSON of what it said of itself when it was found.

    Its identity is that of its weights. A server that was started again with others is noticed with the batch.
    """

    name: str
    identity: str
    reason: str
    facts: str
    game: Game | None = None
    copies: tuple[FrozenCopy, ...] = ()

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        facts = json.loads(self.facts)
        fields = {name: array for name, array in game.spec.observations.items() if name not in game.spec.value_fields}
        if facts["observations"] != {name: [list(array.shape), array.dtype] for name, array in fields.items()}:
            raise UnknownContender(
                f"{self.name} plays {facts['game']}, whose observations are not those of {game.env.id}."
            )
        with client_of(self.name) as client, ThreadPoolExecutor(REQUESTS) as threads:
            self._require_same(client)
            yield RemotePolicy(client, threads, game, greedy=conditions.greedy)
            self._require_same(client)

    def _require_same(self, client: PolicyClient) -> None:
        """Raise UnknownContender where the server has other weights now. Without an answer its games are aborted."""
        try:
            facts = client.facts()
        except ServedPolicyError:
            return
        if _identity_by(facts) != self.identity:
            raise UnknownContender(
                f"{self.name} serves other weights now than when it was found: start `league serve-policy` with those"
                " from before, or begin another match or tournament."
            )


class RemotePolicy:
    """Asks a server for the action of every slot. A request that fails aborts its game; after three none is made.

    The memory of a game travels with its requests and is kept here by game and seat, until the next game begins there.
    The core state of a slot says only that its game has begun.
    """

    version = -1
    core_size = 1

    def __init__(self, client: PolicyClient, threads: ThreadPoolExecutor, game: Game, *, greedy: bool) -> None:
        self.last_failure = ""
        self._client = client
        self._threads = threads
        self._spec = game.spec
        self._greedy = greedy
        self._states: dict[tuple[int, int], Any] = {}
        self._counting = threading.Lock()
        self._strikes = 0
        self._failed: list[int] = []

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        turn, slots = inputs.turn, inputs.slots
        seeds = rng.integers(2**31, size=len(slots)).tolist()
        seats = list(zip(turn.env_index[slots].tolist(), turn.seat[slots].tolist(), strict=True))
        for begins, seat in zip((inputs.core[:, 0] == 0).tolist(), seats, strict=True):
            if begins:
                self._states[seat] = None
        requests = [
            (inputs, slot, self._states[seat], seed)
            for slot, seat, seed in zip(slots.tolist(), seats, seeds, strict=True)
        ]
        answers = list(self._threads.map(self._ask, requests))
        actions = self._idle(inputs)
        for place, ((game, seat), answer) in enumerate(zip(seats, answers, strict=True)):
            if answer is None:
                self._failed.append(game)
            else:
                actions[place] = answer["action"]
                self._states[game, seat] = answer.get("state")
        core = np.ones_like(inputs.core)
        return ActOutputs(actions=actions, log_probs=np.zeros(len(slots), np.float32), core=core)

    def failed_games(self) -> list[int]:
        failed, self._failed = self._failed, []
        return failed

    def _ask(self, request: tuple[ActInputs, int, Any, int]) -> dict[str, Any] | None:
        """The answer for a slot; None where there is none, or it is illegal."""
        inputs, slot, state, seed = request
        if self._strikes >= MAX_STRIKES:
            return None
        turn, spec = inputs.turn, self._spec
        shown = {name: field[slot] for name, field in turn.obs.items() if name not in spec.value_fields}
        mask = None if turn.action_mask is None else turn.action_mask[slot]
        try:
            answer = self._client.decide(
                shown, mask, state=state, seed=seed, greedy=self._greedy, seat=int(turn.seat[slot])
            )
            if mask is not None and spec.actions.kind == "categorical" and not mask[int(answer["action"])]:
                raise ServedPolicyError(0, f"its action {answer['action']} is illegal")
        except (ServedPolicyError, IndexError, KeyError, TypeError, ValueError) as error:
            with self._counting:
                self.last_failure = f"failed: {error}"
                self._strikes += 1
            return None
        return answer

    def _idle(self, inputs: ActInputs) -> NDArray[np.generic]:
        """[K] an action of the right form for every slot."""
        spec, slots = self._spec.actions, inputs.slots
        if spec.kind == "categorical":
            mask = inputs.turn.action_mask
            return np.zeros(len(slots), np.int64) if mask is None else mask[slots].argmax(axis=1)
        return np.zeros((len(slots), *spec.shape), np.float32 if spec.kind == "box" else np.int64)


def find_served(written: str) -> tuple[ServedContender, ...]:
    """The policy behind an address; its identity is that of its weights, as it says itself.

    Raises:
      UnknownContender: it does not answer, or refuses its token.
    """
    try:
        with client_of(written) as client:
            facts = client.facts()
            known = (facts["name"], facts["game"], facts["observations"])
    except (ServedPolicyError, KeyError) as error:
        raise UnknownContender(f"{written}: {str(error).rstrip('.')}; start it with `league serve-policy`.") from error
    name, game, _ = known
    plain = json.dumps(facts, sort_keys=True)
    return (ServedContender(written, _identity_by(facts), f"{name} of {game}, served", plain),)


def _identity_by(facts: dict[str, Any]) -> str:
    """The identity by the weights; by all that a server says of itself where it is too old to tell them."""
    return identity_of("served", facts.get("identity") or facts)


def client_of(written: str) -> PolicyClient:
    """A client for ADDRESS, ADDRESS?token-file=PATH or ADDRESS?token-file=PATH&tls-ca=PATH.

    Raises:
      UnknownContender: a file cannot be used, there is another option, or the token would travel in the clear.
    """
    address, _, query = written.partition("?")
    options = {name: file for name, _, file in (part.partition("=") for part in query.split("&") if part)}
    unknown = [name for name in options if name not in ("token-file", "tls-ca")]
    if unknown:
        raise UnknownContender(
            f"{written}: {unknown[0]!r} is no option; write {address}?token-file=PATH&tls-ca=PATH, or one of them."
        )
    try:
        file = options.get("token-file", "")
        token = token_in(Path(file), make=False) if file else ""
        return PolicyClient(address, token=token, ca_file=options.get("tls-ca", ""), timeout_s=DEADLINE_S)
    except LeagueError as error:
        raise UnknownContender(f"{written}: {error}") from error

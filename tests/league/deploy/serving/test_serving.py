"""A served policy decides as the policy itself, in batches and sessions, within its limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.deploy.serving.app import PolicyApp, ServingConfig
from league.deploy.serving.batching import Batcher, Overloaded
from league.deploy.serving.served_policy import BadRequest, Decided, Row, ServedPolicy
from league.deploy.serving.server import listening
from league.deploy.serving.sessions import SessionError, Sessions
from league.deploy.serving.wire import ActAnswer, ActRequest, State
from league.envs.protocol import EnvConfig
from league.envs.registry import make, spec_of
from league.http.address import AddressError
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from tests.agents.learner.learner_cases import weights_in
from tests.league.judge.matches.eval_runs import TINY, TINY_LSTM, scaled

FOUR = EnvConfig("connect_four")
TOKEN = "a-token-of-some-length"


def loaded(seed: int, network: NetworkConfig = TINY_LSTM, *, greedy: bool = True) -> LoadedPolicy:
    made = scaled(build_network(spec_of(FOUR), network, seed=seed))
    fresh = build_network(spec_of(FOUR), network, seed=0)
    return LoadedPolicy(f"policy-{seed}", fresh, weights_in(made, version=1), spec_of(FOUR), greedy=greedy)


def positions(count: int, *, seed: int = 0) -> list[tuple[list[Any], list[bool]]]:
    """Boards and masks of one random game."""
    env, rng, found = make(FOUR, num_envs=1), np.random.default_rng(seed), []
    turn = env.reset(seed)
    for _ in range(count):
        assert turn.action_mask is not None
        found.append((turn.obs["board"][0].astype(int).tolist(), turn.action_mask[0].tolist()))
        turn = env.step(np.array([rng.choice(np.flatnonzero(turn.action_mask[0]))]))
    return found


def app_of(policy: LoadedPolicy | LoadedMixture, *, token: str = "", **limits: Any) -> PolicyApp:
    return PolicyApp(ServedPolicy(policy, greedy=True), ServingConfig(**limits), token=token)


def served(app: PolicyApp, script: Callable[[httpx.AsyncClient], Awaitable[Any]], **options: Any) -> Any:
    """Runs a script of requests against the application, without a socket."""

    async def run() -> Any:
        transport = httpx.ASGITransport(app=cast(Any, app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **options) as client:
            return await script(client)

    return asyncio.run(run())


def test_games_of_several_sessions_are_decided_as_by_the_policy_alone() -> None:
    games = [positions(6, seed=seed) for seed in range(3)]
    expected = []
    for game in games:
        policy = loaded(1)
        policy.reset()
        expected.append([policy.act({"board": board}, mask) for board, mask in game])
    batches: list[int] = []
    app = app_of(loaded(1), deadline_ms=20.0)
    app._batcher._note = batches.append
    app.callers = lambda: len(games)

    async def play(client: httpx.AsyncClient, game: list[Any]) -> list[Any]:
        session = (await client.post("/v1/sessions")).json()["session"]
        found = []
        for board, mask in game:
            answer = await client.post("/v1/act", json={"observation": board, "mask": mask, "session": session})
            found.append(answer.json()["action"])
        return found

    async def script(client: httpx.AsyncClient) -> list[Any]:
        return list(await asyncio.gather(*(play(client, game) for game in games)))

    assert served(app, script) == expected
    assert max(batches) > 1


def test_the_state_of_an_answer_carries_the_game_on_as_a_session_does() -> None:
    policy, app = loaded(1), app_of(loaded(1))
    policy.reset()

    async def script(client: httpx.AsyncClient) -> None:
        state = None
        for board, mask in positions(5):
            message = {"observation": {"board": board}, "mask": mask, "state": state, "probs": True}
            answer = (await client.post("/v1/act", json=message)).json()
            np.testing.assert_allclose(answer["probs"], policy.probs(board, mask), atol=1e-6)
            assert answer["action"] == policy.act(board, mask)
            state = answer["state"]

    served(app, script)


def test_a_batch_decides_every_row_by_its_own_member_greed_and_seed() -> None:
    members = [(0.5, loaded(seed, TINY, greedy=False)) for seed in (1, 2)]
    policy = ServedPolicy(LoadedMixture("mixed", members))
    ((board, mask),) = positions(1)
    asked = [
        ActRequest(board, mask, state=State([], member), greedy=greedy, seed=seed, probs=True)
        for member in (0, 1)
        for greedy in (True, False)
        for seed in range(12)
    ]
    together = policy.decide([policy.row(request, None) for request in asked])
    alone = [policy.decide([policy.row(request, None)])[0] for request in asked]
    assert [one.answer.action for one in together] == [one.answer.action for one in alone]
    for request, one in zip(asked, together, strict=True):
        assert isinstance(request.state, State)
        probs = members[request.state.member][1].probs(board, mask)
        np.testing.assert_allclose(one.answer.probs, probs, atol=1e-6)
        assert not request.greedy or one.answer.action == int(probs.argmax())
        assert one.answer.state == request.state
    drawn = [policy.first_state().member for _ in range(200)]
    assert 60 < sum(drawn) < 140


class CountingPolicy:
    """Remembers the batches that it was asked for."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def decide(self, rows: Sequence[Row]) -> list[Decided]:
        self.sizes.append(len(rows))
        return [Decided(ActAnswer(row, 0.0), State()) for row in rows]


def batcher(policy: CountingPolicy, *, callers: int = 99, deadline_s: float = 0.02) -> Batcher:
    return Batcher(
        cast(ServedPolicy, policy),
        max_batch=4,
        deadline_s=deadline_s,
        max_waiting=6,
        callers=lambda: callers,
        note=lambda size: None,
    )


def test_batches_end_by_size_by_callers_and_by_the_deadline() -> None:
    async def ask(rows: int, **options: Any) -> list[int]:
        policy = CountingPolicy()
        one = batcher(policy, **options)
        answers = await asyncio.wait_for(asyncio.gather(*(one.decide(cast(Row, row)) for row in range(rows))), 5)
        assert [decided.answer.action for decided in answers] == list(range(rows))
        return policy.sizes

    assert asyncio.run(ask(6, deadline_s=60.0, callers=2)) == [4, 2]
    assert asyncio.run(ask(2, deadline_s=60.0, callers=2)) == [2]
    assert asyncio.run(ask(3)) == [3]


def test_a_full_queue_refuses_and_a_caller_that_left_costs_nothing() -> None:
    async def script() -> list[int]:
        policy = CountingPolicy()
        one = batcher(policy)
        waiting = [asyncio.ensure_future(one.decide(cast(Row, row))) for row in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting += [asyncio.ensure_future(one.decide(cast(Row, row))) for row in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await one.decide(cast(Row, 9))
        await asyncio.wait(waiting, timeout=5)
        return policy.sizes

    assert sum(asyncio.run(script())) == 5


def test_sessions_are_bounded_and_forgotten_when_idle() -> None:
    now = [0.0]
    sessions = Sessions(lambda: State([0.0]), max_sessions=2, idle_s=10.0, clock=lambda: now[0])
    first, second = sessions.open(), sessions.open()
    with pytest.raises(SessionError) as full:
        sessions.open()
    assert full.value.status == 503
    sessions.put(first, State([1.0])) if sessions.take(first) else None
    now[0] = 5.0
    assert sessions.take(first) == State([1.0])
    with pytest.raises(SessionError) as busy:
        sessions.take(first)
    assert busy.value.status == 409
    sessions.release(first)
    now[0] = 11.0
    third = sessions.open()  # the second had its time
    with pytest.raises(SessionError) as gone:
        sessions.take(second)
    assert gone.value.status == 404
    sessions.restart(first)
    assert sessions.take(first) == State([0.0])
    sessions.close(third)
    assert len(sessions) == 1


def test_a_restart_waits_for_the_decision_under_way_and_is_a_use() -> None:
    now = [0.0]
    sessions = Sessions(lambda: State([0.0]), max_sessions=2, idle_s=10.0, clock=lambda: now[0])
    name = sessions.open()
    sessions.take(name)
    with pytest.raises(SessionError) as busy:
        sessions.restart(name)  # else the next game would begin with the memory of the last
    assert busy.value.status == 409
    sessions.put(name, State([1.0]))
    now[0] = 9.0
    sessions.restart(name)
    now[0] = 15.0
    assert sessions.take(name) == State([0.0])


BOARD, MASK = positions(1)[0]
REFUSED: list[tuple[bytes, int, str]] = [
    (b"{", 422, "none for an action"),
    (b'{"observation": 1, "pickle": 2}', 422, "pickle"),
    (json.dumps({"observation": [1, 2], "state": None}).encode(), 422, "shape"),
    (json.dumps({"observation": BOARD}).encode(), 422, "carries a state"),
    (json.dumps({"observation": BOARD, "state": {"core": [1.0]}}).encode(), 422, "8 finite ones"),
    (json.dumps({"observation": BOARD, "state": {"member": 7}}).encode(), 422, "1 members"),
    (json.dumps({"observation": BOARD, "state": None, "mask": [0] * 7}).encode(), 422, "no action"),
    (json.dumps({"observation": BOARD, "session": "nobody"}).encode(), 404, "no such session"),
    (b'{"observation": "' + b"x" * 5000 + b'"}', 413, "at most 4096"),
    (b'{"observation": ' + b"[" * 3000 + b"]" * 300 + b"}", 422, "none for an action"),
]


def test_what_does_not_fit_is_refused_with_a_reason() -> None:
    app = app_of(loaded(1), max_body_bytes=4096)

    async def script(client: httpx.AsyncClient) -> None:
        for body, status, reason in REFUSED:
            answer = await client.post("/v1/act", content=body)
            assert answer.status_code == status and reason in answer.json()["error"], (body[:80], answer.text)
        assert (await client.get("/v1/none")).status_code == 404
        for method, path, allow in (
            ("PUT", "/v1/sessions", "POST"),
            ("GET", "/v1/act", "POST"),
            ("GET", "/v1/sessions/some", "DELETE"),
            ("DELETE", "/v1/sessions/some/restart", "POST"),
            ("POST", "/v1/policy", "GET, HEAD"),
        ):
            refused = await client.request(method, path)
            assert (refused.status_code, refused.headers.get("allow")) == (405, allow), path
        assert (await client.head("/healthz")).status_code == 200
        full = (await client.get("/metrics")).text
        assert 'league_policy_requests_total{status="422"}' in full

    served(app, script)


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.deploy.serving.app.BODY_S", 0.02)
    app, sent = app_of(loaded(1, TINY)), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": "/v1/act", "headers": headers}
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 5))
    assert sent[0]["status"] == 408


def test_only_callers_with_the_token_and_of_this_host_get_in() -> None:
    app = app_of(loaded(1, TINY), token=TOKEN)

    async def script(client: httpx.AsyncClient) -> list[int]:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        tried: list[tuple[str, dict[str, str]]] = [
            ("/v1/policy", {}),
            ("/v1/policy", {"authorization": "Bearer wrong"}),
            ("/v1/policy", bearer),
            ("/healthz", {}),
            ("/v1/policy", {**bearer, "origin": "http://localhost"}),
            ("/v1/policy", {**bearer, "host": "rebound.example"}),
        ]
        return [(await client.get(path, headers=headers)).status_code for path, headers in tried]

    assert served(app, script) == [401, 401, 200, 200, 403, 400]


def test_a_full_server_says_when_to_try_again() -> None:
    app = app_of(loaded(1), max_sessions=1)

    async def script(client: httpx.AsyncClient) -> httpx.Response:
        await client.post("/v1/sessions")
        return await client.post("/v1/sessions")

    answer = served(app, script)
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"


def test_a_policy_without_memory_needs_no_session() -> None:
    policy = ServedPolicy(loaded(1, TINY))
    ((board, mask),) = positions(1)
    assert policy.decide([policy.row(ActRequest(board, mask), None)])[0].answer.state is None
    with pytest.raises(BadRequest):
        ServedPolicy(loaded(1)).row(ActRequest(board, mask), None)


def test_the_unix_socket_is_removed_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "policy.sock"
    with listening(path):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(AddressError, match="listens there already"), listening(path):
            pass
    assert not path.exists()

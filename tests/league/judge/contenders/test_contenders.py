"""Contenders: each written form stands for one policy with an identity, and all of a match play one game."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import uvicorn

from league.agents.acting.policy import ActInputs
from league.agents.nets.network import Network
from league.deploy.serving.app import PolicyApp, ServingConfig
from league.deploy.serving.client import PolicyClient
from league.deploy.serving.served import RemotePolicy
from league.deploy.serving.served_policy import ServedPolicy
from league.envs.plugins import load
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make, spec_of
from league.judge.contenders.contender import Contender, Game, OpenConditions, UnknownContender
from league.judge.contenders.finding import (
    CONTENDERS,
    find_contenders,
    finder_of,
    game_of,
    remarks_on,
    require_playable,
)
from league.judge.matches.contest import ContestConditions
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy
from tests.league.judge.contenders.fake_engines import GTP, UCI, made
from tests.league.judge.matches.eval_runs import FOUR, TINY_LSTM, MadeRun, constant_network, network_of, scaled
from tests.league.judge.played_batch import play_batch

ROSHAMBO = EnvConfig("rock_paper_scissors")
TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders a and b of connect four, c of rock, paper, scissors."""
    folder = tmp_path_factory.mktemp("runs")
    for name, env in (("a", FOUR), ("b", FOUR), ("c", ROSHAMBO)):
        made = MadeRun(folder / name, env=env)
        for action in (1, 2):
            made.snapshot("main-0", constant_network(made.config, action=action), trained_steps=action)
        made.close()
    return folder


@contextmanager
def serving(kind: str, run: Path, folder: Path, *, player: str = "main-0-s1") -> Iterator[dict[str, str]]:
    """Serves a policy, for the kinds that need it; yields the parts of its address."""
    if kind not in ("http", "unix"):
        yield {}
        return
    places = {"socket": str(folder / "policy.sock"), "token": str(folder / "token"), "port": ""}
    Path(places["token"]).write_text(f"{TOKEN}\n")
    policy = load_policy(run, player)
    app = PolicyApp(ServedPolicy(policy, greedy=True), ServingConfig(), token=TOKEN if kind == "http" else "")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        places["port"] = str(listener.getsockname()[1])
        uds = places["socket"] if kind == "unix" else None
        server = uvicorn.Server(uvicorn.Config(app, uds=uds, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=(None if uds else [listener],))
        thread.start()
        deadline = time.monotonic() + 10.0
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield places
        finally:
            server.should_exit = True
            thread.join(10.0)


WRITTEN: Mapping[str, tuple[str, EnvConfig]] = {
    "bot": ("bot:random", FOUR),
    "uci": ("uci:{uci}?nodes=1", EnvConfig("openspiel:chess")),
    "gtp": ("gtp:{gtp}", EnvConfig("openspiel:go(board_size=5)")),
    "http": ("http://127.0.0.1:{port}?token-file={token}", FOUR),
    "unix": ("unix:{socket}", FOUR),
}
"""One contender of each registered kind, and a game that it plays."""


def acted(contender: Contender, game: Game, *, seed: int = 0) -> list[int]:
    """Actions of one turn of eight games."""
    env = make(game.env, num_envs=8)
    turn = env.reset(0)
    slots = np.arange(len(turn.env_index))
    with contender.open(game, OpenConditions(seed=seed, greedy=True)) as policy:
        core = np.zeros((len(slots), int(getattr(policy, "core_size", 0))), np.float32)
        history: list[list[int]] = [[] for _ in slots]
        actions = policy.act(ActInputs(env, turn, slots, core, history), np.random.default_rng(seed)).actions
    env.close()
    return [int(action) for action in actions]


@pytest.mark.parametrize("kind", ["stored", *CONTENDERS])
def test_every_kind_keeps_the_contract(kind: str, runs: Path, tmp_path: Path) -> None:
    written, env = (f"{runs / 'a'}:best", FOUR) if kind == "stored" else WRITTEN[kind]
    for name, source in (("uci", UCI), ("gtp", GTP)):
        (tmp_path / name).mkdir()
        written = written.replace(f"{{{name}}}", str(made(tmp_path / name, source)[0]))
    with serving(kind, runs / "a", tmp_path) as places:
        check_contract(kind, written.format(**places), env)


def check_contract(kind: str, written: str, env: EnvConfig) -> None:
    if kind != "stored":
        assert finder_of(written) is load(CONTENDERS[kind])
    (contender,) = find_contenders([written])
    (again,) = find_contenders([written])
    assert contender.name == written and contender.identity == again.identity and len(contender.identity) == 64
    assert contender.reason
    game = game_of([contender], env=None if contender.game else env)
    sent = pickle.loads(pickle.dumps(contender))
    assert acted(contender, game) == acted(again, game) == acted(sent, game), "the same whenever and wherever opened"


def test_a_folder_of_snapshots_is_one_contender_each_and_their_identity_is_their_weights(runs: Path) -> None:
    (latest,) = find_contenders([f"{runs / 'a'}:main-0-s1"])
    both = find_contenders([str(runs / "a" / "snapshots")])
    assert len(both) == 2 and latest.identity in {one.identity for one in both}
    game = game_of(both)
    assert {tuple(acted(one, game)) for one in both} == {(1,) * 8, (2,) * 8}


def test_a_run_alone_is_its_automatic_choice_and_a_mixture_has_an_identity_of_its_own(runs: Path) -> None:
    alone, best = find_contenders([str(runs / "a"), f"{runs / 'a'}:best"])
    mixed, other = find_contenders([f"{runs / 'a'}:main-0-s0+main-0-s1", f"{runs / 'a'}:main-0-s0*2+main-0-s1"])
    assert alone.identity == best.identity
    assert len({best.identity, mixed.identity, other.identity}) == 3 and len(mixed.copies) == 2
    assert remarks_on([alone, best], game_of([alone])) == (f"{best.name} and {alone.name} are the same policy",)


def test_contenders_of_two_games_are_refused_in_one_sentence(runs: Path) -> None:
    found = find_contenders([f"{runs / 'a'}:best", f"{runs / 'c'}:best"])
    with pytest.raises(UnknownContender, match=r"c:best plays rock_paper_scissors and .*a:best plays connect_four"):
        game_of(found)
    with pytest.raises(UnknownContender, match="--env plays tic_tac_toe"):
        game_of(found[:1], env=EnvConfig("tic_tac_toe"))
    with pytest.raises(UnknownContender, match="give one with --env"):
        game_of(find_contenders(["bot:random"]))


def test_what_stands_for_nothing_is_refused(runs: Path) -> None:
    with pytest.raises(UnknownContender, match="is no contender"):
        find_contenders([str(runs / "nothing")])
    with pytest.raises(UnknownContender, match="for the bot of that name write bot:mcts:25"):
        find_contenders(["mcts:25"])
    with pytest.raises(UnknownContender, match="named twice"):
        find_contenders(["bot:random", "bot:random"])
    with pytest.raises(EnvError, match="unknown bot"):
        find_contenders(["bot:randon"])


def test_a_bot_that_cannot_play_the_game_is_named_before_the_first_game() -> None:
    game = Game(ROSHAMBO, spec_of(ROSHAMBO))
    require_playable(find_contenders(["bot:random"]), game)
    with pytest.raises(EnvError, match="tactical"):
        require_playable(find_contenders(["bot:tactical"]), game)


def test_a_policy_that_is_not_served_or_plays_another_game_is_refused_and_one_that_ends_aborts_games(
    runs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnknownContender, match="start it with `league serve-policy`"):
        find_contenders([f"unix:{tmp_path / 'nothing'}"])
    with pytest.raises(UnknownContender, match="'port' is no option"):
        find_contenders(["http://127.0.0.1:1?port=3"])
    with serving("unix", runs / "a", tmp_path) as places:
        (contender,) = find_contenders([f"unix:{places['socket']}"])
        with pytest.raises(UnknownContender, match="whose observations are not those of rock_paper_scissors"):
            require_playable([contender], Game(ROSHAMBO, spec_of(ROSHAMBO)))
        game, bot = Game(FOUR, spec_of(FOUR)), find_contenders(["bot:random"])[0]
        whole = play_batch(game, [contender, bot], ContestConditions(), number=0, games=8)
        assert whole.games == 8 and whole.aborted == (0, 0)
    gone = play_batch(game, [contender, bot], ContestConditions(), number=0, games=8)
    assert gone.games == 0 and gone.aborted == (8, 0)


def test_a_server_that_was_started_again_with_other_weights_is_noticed(runs: Path, tmp_path: Path) -> None:
    game, bot = Game(FOUR, spec_of(FOUR)), find_contenders(["bot:random"])[0]
    with serving("unix", runs / "a", tmp_path, player="main-0-s0") as places:
        (contender,) = find_contenders([f"unix:{places['socket']}"])
    with (
        serving("unix", runs / "a", tmp_path, player="main-0-s1"),
        pytest.raises(UnknownContender, match="serves other weights now"),
    ):
        play_batch(game, [contender, bot], ContestConditions(), number=0, games=2)
    with pytest.raises(UnknownContender, match="serves other weights now"), ExitStack() as stack:
        with serving("unix", runs / "a", tmp_path, player="main-0-s0"):
            stack.enter_context(contender.open(game, OpenConditions(seed=0, greedy=True)))
        servers = stack.pop_all()
        with serving("unix", runs / "a", tmp_path, player="main-0-s1"):
            servers.close()


def test_the_identity_of_a_served_policy_is_that_of_its_weights_alone(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = f"unix:{tmp_path / 'policy.sock'}"
    with serving("unix", runs / "a", tmp_path, player="main-0-s0"):
        (first,) = find_contenders([written])
        told = PolicyClient.facts
        monkeypatch.setattr(PolicyClient, "facts", lambda client: {**told(client), "max_batch": 3, "name": "other"})
        assert find_contenders([written])[0].identity == first.identity
        monkeypatch.setattr(PolicyClient, "facts", lambda client: {**told(client), "identity": ""})
        old = find_contenders([written])[0]
        assert old.identity != first.identity and old.identity == find_contenders([written])[0].identity
    with serving("unix", runs / "a", tmp_path, player="main-0-s1"):
        assert find_contenders([written])[0].identity not in (first.identity, old.identity)


def test_a_served_policy_with_memory_plays_the_very_games_that_it_plays_from_its_folder(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", cast(Network, scaled(network_of(made.config, seed=2))), trained_steps=1)
    run, game = made.close(), Game(FOUR, spec_of(FOUR))
    with serving("unix", run, tmp_path, player="main-0-s0") as places:
        stored, served, bot = find_contenders([f"{run}:main-0-s0", f"unix:{places['socket']}", "bot:random"])
        ours, theirs = (
            play_batch(game, [one, bot], ContestConditions(), number=0, games=16) for one in (stored, served)
        )
    assert ours.steps == theirs.steps and np.array_equal(ours.team_returns, theirs.team_returns)


def test_a_served_policy_keeps_the_memory_of_the_games_in_play_alone(runs: Path, tmp_path: Path) -> None:
    game, bot = Game(FOUR, spec_of(FOUR)), find_contenders(["bot:random"])[0]
    conditions = OpenConditions(seed=0, greedy=True)
    with serving("unix", runs / "a", tmp_path) as places:
        (contender,) = find_contenders([f"unix:{places['socket']}"])
        with contender.open(game, conditions) as policy, bot.open(game, conditions) as other:
            assert isinstance(policy, RemotePolicy)
            for seed in range(3):
                Match(FOUR, [policy, other], seed=seed).play(8)
            assert len(policy._states) == 4 * game.spec.num_seats, "eight games are four at a time, once for each side"

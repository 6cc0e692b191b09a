"""Frozen policies from other runs: copied at the start, met by their share, rated; their source may then go."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Weights
from league.config.loading import parse_config
from league.core.metagame.ratings import league_ratings
from league.core.state.events import EVENTS, LeaseFinished, LeaseGranted, PolicyImported
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.errors import ConfigError, LeagueError
from league.hosts.actors.actor_host import ActorHost
from league.judge.matches.evaluation import evaluate_run
from league.operate.history.fork import fork_run
from league.policies.exact.load_policy import load_policy
from league.see.reports.lineage import read_lineage
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague
from league.store.snapshots import LocalSnapshotStore
from tests.agents.learner.learner_cases import weights_in
from tests.league.hosts.host_cases import lease_of, paired, setup_of, weights_of
from tests.league.hosts.test_hosts import Table
from tests.league.judge.matches import eval_runs
from tests.league.judge.matches.eval_runs import MadeRun, constant_network
from tests.league.tiny_runs import (
    ONE_PLAYER,
    checkpoints_of,
    events_of,
    go_on,
    history_of,
    start,
    state_of,
    tiny,
)

LSTM = NetworkConfig(hidden=(6,), core="lstm", core_size=5)
IMPORTED = "imported:opponent"
TIC_TAC_TOE = EnvConfig("tic_tac_toe")
ROCK_PAPER_SCISSORS = EnvConfig("rock_paper_scissors")


def run_of(path: Path, *, env: EnvConfig = TIC_TAC_TOE, network: NetworkConfig = LSTM, seeds: int = 2) -> Path:
    """A run folder with snapshots main-0-s0, main-0-s1 ... of untrained networks."""
    made = MadeRun(path, env=env, network=network)
    spec = make(env, num_envs=1).spec
    for seed in range(seeds):
        made.snapshot("main-0", build_network(spec, network, seed=seed), version=seed)
    return made.close()


def opponent(source: Path | str, **changes: Any) -> dict[str, Any]:
    return {"policy": IMPORTED, "source": str(source), "player": "main-0", "probability": 0.5, **changes}


def with_fixed_opponents(*fixed_opponents: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return tiny(league={**ONE_PLAYER, "fixed_opponents": list(fixed_opponents)}, **changes)


def games_by_opponent(path: Path) -> dict[str, int]:
    """Training games of main-0 by opponent."""
    met: dict[str, int] = {}
    homes = {event.lease.lease_id: event.lease.home for event in events_of(path) if isinstance(event, LeaseGranted)}
    for event in events_of(path):
        if isinstance(event, LeaseFinished) and homes[event.lease_id] is not None:
            for outcome in event.outcomes:
                (opponent,) = set(outcome.policies) - {"main-0"} or {"main-0"}
                met[opponent] = met.get(opponent, 0) + outcome.games
    return met


def test_an_imported_policy_with_a_network_of_its_own_joins_before_the_first_lease(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=1_500)
    path, events = tmp_path / "run", events_of(tmp_path / "run")
    (added,) = [event for event in events if isinstance(event, PolicyImported)]
    first = next(event for event in events if isinstance(event, LeaseGranted))
    assert events.index(added) < events.index(first)
    assert (added.snapshot.snapshot_id, added.snapshot.version) == (IMPORTED, 1)
    met = games_by_opponent(path)
    assert met[IMPORTED] / sum(met.values()) == pytest.approx(0.5, abs=0.1)
    assert {row.policy for row in league_ratings(state_of(path)) if row.games} >= {IMPORTED, "main-0-s0"}
    assert verify_run(path).problems == ()
    assert IMPORTED in read_lineage(path).text()
    assert read_status(path).league.snapshots == len(state_of(path).snapshots)
    assert state_of(path).players["main-0"].trained_steps > 0


def test_an_imported_policy_plays_as_it_does_at_home(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=100)
    here, home = load_policy(tmp_path / "run", IMPORTED), load_policy(source, "main-0-s1")
    turn = make(TIC_TAC_TOE, num_envs=1).reset(0)
    seen, mask = {name: field[0] for name, field in turn.obs.items()}, turn.action_mask
    assert mask is not None
    assert np.array_equal(here.probs(seen, mask[0]), home.probs(seen, mask[0]))
    report = evaluate_run(tmp_path / "run", players=(IMPORTED,), bots=("random",), games=4)
    assert IMPORTED in report.to_json()


def test_a_run_continues_exactly_although_the_source_is_gone(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    plain = with_fixed_opponents(opponent(source, player="best"))
    start(tmp_path, plain, env_steps=1_200, run="whole")
    start(tmp_path, plain, env_steps=500)
    shutil.rmtree(source)
    go_on(tmp_path / "run", env_steps=700)
    assert history_of(tmp_path / "run") == history_of(tmp_path / "whole")
    assert checkpoints_of(tmp_path / "run") == checkpoints_of(tmp_path / "whole")
    assert games_by_opponent(tmp_path / "run")[IMPORTED] > 0


def test_a_fork_continues_without_an_imported_policy_whose_weights_are_gone(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=100)
    digest = state_of(tmp_path / "run").snapshots[IMPORTED].digest
    shutil.rmtree(tmp_path / "run" / "snapshots" / digest[:2] / digest)
    assert fork_run(tmp_path / "run", tmp_path / "fork", at="latest").set_aside == (IMPORTED,)
    go_on(tmp_path / "fork", env_steps=100)


def test_a_start_that_died_before_the_imported_policy_was_noted_down_is_made_good_once(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=100)
    journal = tmp_path / "run" / "journal.db"
    for left in (journal, *(tmp_path / "run").glob("journal.db-*"), tmp_path / "run" / "status.json"):
        left.unlink(missing_ok=True)
    JournaledLeague.create(journal, wall_time=lambda: 0.0).close()
    go_on(tmp_path / "run", env_steps=200)
    go_on(tmp_path / "run", env_steps=200)
    assert sum(isinstance(event, PolicyImported) for event in events_of(tmp_path / "run")) == 1
    assert games_by_opponent(tmp_path / "run")[IMPORTED] > 0


def test_the_founding_and_its_imported_policies_are_durable_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash at the commit leaves a journal with neither; the weights are in the store before."""
    source = run_of(tmp_path / "source")

    def crash(league: JournaledLeague) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(JournaledLeague, "commit", crash)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=100)
    assert len(list(LocalSnapshotStore(tmp_path / "run" / "snapshots").digests())) == 1
    with JournalReader.open_readonly(tmp_path / "run" / "journal.db", events=EVENTS) as reader:
        assert reader.head().seq == 0


def test_what_best_stood_for_is_noted_in_the_run(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", seeds=3)
    start(tmp_path, with_fixed_opponents(opponent(source, player="best")), env_steps=100)
    (noted,) = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["league"]["fixed_opponents"]
    assert (noted["policy"], noted["player"], noted["source"]) == (IMPORTED, "main-0-s2", str(source))


def test_a_source_is_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    run_of(tmp_path / "source")
    start(tmp_path, with_fixed_opponents(opponent("source")), env_steps=100)
    assert IMPORTED in state_of(tmp_path / "run").snapshots


def test_the_members_of_a_mixture_share_the_games(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "source", env=ROCK_PAPER_SCISSORS)
    hands = {made.snapshot("main-0", constant_network(made.config, action=action)): action for action in range(3)}
    made.rate_cycle(hands)
    source = made.close()
    plain = with_fixed_opponents(
        opponent(source, player="mixture", probability=0.9),
        env={"id": "rock_paper_scissors"},
        learner={"unroll_length": 1},
    )
    start(tmp_path, plain, env_steps=1_000)
    settings = state_of(tmp_path / "run").config
    assert settings is not None
    assert {member.policy for member in settings.fixed_opponents} == {f"{IMPORTED}-{number}" for number in range(3)}
    assert {member.player for member in settings.fixed_opponents} == set(hands)
    assert sum(member.probability for member in settings.fixed_opponents) == pytest.approx(0.9)
    assert set(games_by_opponent(tmp_path / "run")) >= {member.policy for member in settings.fixed_opponents}


def test_a_player_joins_as_it_was_last_saved(tmp_path: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=900, run="source")
    saved = state_of(tmp_path / "source").players["main-0"]
    assert saved.checkpoint is not None
    newest = list(state_of(tmp_path / "source").snapshots.values())[-1]
    assert saved.checkpoint.version > newest.version, "the checkpoint is what must be chosen"
    start(tmp_path, with_fixed_opponents(opponent(tmp_path / "source")), env_steps=100)
    joined = state_of(tmp_path / "run").snapshots[IMPORTED]
    assert joined.version == saved.checkpoint.version
    here, home = load_policy(tmp_path / "run", IMPORTED), load_policy(tmp_path / "source", "main-0")
    fields, legal = {"board": np.zeros((1, *here.spec.observations["board"].shape), np.float32)}, np.ones((1, 9), bool)
    assert np.array_equal(here.all_probs(fields, legal), home.all_probs(fields, legal))  # type: ignore[union-attr]


def test_the_folder_of_one_snapshot_is_a_source_too(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source")
    (folder,) = [path.parent for path in source.rglob("manifest.json") if b'"version":1}' in path.read_bytes()]
    shutil.copytree(folder, tmp_path / "exported")
    shutil.rmtree(source)
    start(tmp_path, with_fixed_opponents(opponent(tmp_path / "exported", player="best")), env_steps=200)
    assert state_of(tmp_path / "run").snapshots[IMPORTED].version == 1


def flipped(source: Path) -> None:
    for weights in source.rglob("weights.safetensors"):
        content = bytearray(weights.read_bytes())
        content[-3] ^= 1
        weights.write_bytes(content)


@pytest.mark.parametrize(
    ("changes", "harm", "message"),
    [
        ({}, shutil.rmtree, "imported:opponent, '.*source', does not exist here or beside the configuration"),
        ({"player": "mian-0"}, lambda source: None, "did you mean main-0"),
        ({}, flipped, "weights.safetensors is corrupt: its sha256 is"),
        ({}, lambda source: (source / "config.yaml").unlink(), "source is not a run folder"),
    ],
    ids=["missing", "player", "corrupt", "no run"],
)
def test_a_source_that_cannot_be_used_is_refused_and_leaves_no_run(
    tmp_path: Path, changes: dict[str, Any], harm: Callable[[Path], object], message: str
) -> None:
    source = run_of(tmp_path / "source")
    harm(source)
    with pytest.raises(LeagueError, match=message):
        start(tmp_path, with_fixed_opponents(opponent(source, **changes)), env_steps=100)
    assert not (tmp_path / "run").exists()


def test_a_policy_of_another_game_is_refused_by_both_names(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", env=EnvConfig("connect_four"))
    with pytest.raises(LeagueError, match="trained on connect_four and cannot play tic_tac_toe"):
        start(tmp_path, with_fixed_opponents(opponent(source)), env_steps=100)


def test_a_game_that_only_looks_alike_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = run_of(tmp_path / "source", env=EnvConfig("rock_paper_scissors", {"stakes": [1, 2, 3]}), network=LSTM)
    start(tmp_path, with_fixed_opponents(opponent(source), env={"id": "rock_paper_scissors"}), env_steps=100)
    said = " ".join(capsys.readouterr().out.split())
    assert f"{IMPORTED} was trained on rock_paper_scissors with {{'stakes': [1, 2, 3]}} and plays" in said


def test_no_file_is_unpickled(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(3)}, tmp_path / "policy.pt")
    with pytest.raises(LeagueError, match=r"policy.pt, is a file: give a run folder.*nothing else is read"):
        start(tmp_path, with_fixed_opponents(opponent(tmp_path / "policy.pt")), env_steps=100)


def test_weights_that_are_not_finite_never_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MadeRun(tmp_path / "source", env=TIC_TAC_TOE)
    network = build_network(make(TIC_TAC_TOE, num_envs=1).spec, made.config.network, seed=0)
    good = weights_in(network)
    vector = good.vector.copy()
    vector[7] = np.nan
    monkeypatch.setattr(eval_runs, "weights_in", lambda network, version: replace(good, vector=vector))
    made.snapshot("main-0", network)
    with pytest.raises(LeagueError, match="refusing to publish non-finite weights"):
        start(tmp_path, with_fixed_opponents(opponent(made.close())), env_steps=100)


@pytest.mark.parametrize(
    ("league", "message"),
    [
        ("fixed_opponents: [{policy: 'imported:a'}]", "fixed_opponents.0: imported:a has no source"),
        (
            "fixed_opponents: [{policy: 'bot:random'}, {policy: 'bot:rnadom'}]",
            "fixed_opponents.1: unknown bot 'rnadom'",
        ),
        (
            "players: [{role: main_agent, starts_from: 'bot:random'}]",
            "players.0.starts_from: 'bot:random' is no imported policy of fixed_opponents",
        ),
        ("preset: exploit", "main_exploiter meets only its fixed opponents, and there is none"),
        ("preset: exploit, fixed_opponents: [{policy: 'bot:random', roles: [main_agent]}]", "is to meet"),
    ],
)
def test_fixed_opponents_that_cannot_work_are_refused_with_the_configuration(league: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(f"env: {{id: tic_tac_toe}}\nleague: {{{league}}}\n", source="test")


def host_with(fixed_opponents: dict[str, NetworkConfig], network: NetworkConfig) -> tuple[ActorHost, Table]:
    setup = replace(setup_of(), network=network, imported_networks=fixed_opponents)
    return ActorHost(setup, name="actor-0", dtype=torch.float32), Table(setup)


def lstm_weights(seed: int) -> Weights:
    return weights_of(replace(setup_of(), network=LSTM), seed=seed)


def test_an_imported_policy_keeps_its_memory_among_networks_that_have_none() -> None:
    """The same games as where the run's own network is the imported policy's: same seeds, same draws, same results."""
    lease = lease_of(*paired("imported:a", "imported:b", records=False), home=None, steps=60)
    frozen = {"imported:a": lstm_weights(1), "imported:b": lstm_weights(2)}
    results = []
    for host, table in (
        host_with({}, LSTM),
        host_with(dict.fromkeys(frozen, LSTM), NetworkConfig(hidden=(8,))),
        host_with(dict.fromkeys(frozen, LSTM), NetworkConfig(hidden=(8,), core="lstm", core_size=9)),
    ):
        results.append(host.play(lease, frozen=frozen, learners=table))
        host.close()
    assert results[0] == results[1] == results[2]
    assert sum(outcome.games for outcome in results[0].outcomes) > 20


@pytest.mark.parametrize("core_size", [0, 3, 9])
def test_what_is_recorded_beside_an_imported_policy_has_the_core_states_of_the_learner(core_size: int) -> None:
    network = NetworkConfig(hidden=(8,), core="lstm", core_size=core_size) if core_size else NetworkConfig(hidden=(8,))
    unrolls = []
    for fixed_opponents in ({}, {"imported:a": LSTM}):
        host, table = host_with(fixed_opponents, network)
        host.play(lease_of(steps=60), frozen={}, learners=table)
        unrolls.append([part for _, part in table.unrolls()])
        host.play(lease_of(*paired("main-0", "bot:random"), steps=60), frozen={}, learners=table)
        host.close()
    for alone, beside in zip(*unrolls, strict=True):
        assert beside.core.shape[1] == 2 * core_size
        assert np.array_equal(alone.core, beside.core)
        assert np.array_equal(alone.actions, beside.actions)


def test_an_exploiter_finds_the_best_response_to_a_biased_policy(tmp_path: Path) -> None:
    """The prey shows rock half the time: paper earns 1/4 a game, what the game's own mixture earns is 0."""
    made = MadeRun(tmp_path / "source", env=ROCK_PAPER_SCISSORS)
    prey = constant_network(made.config, action=0)
    prey.blocks[-1].module.linear.bias.data[:3] = torch.tensor([0.5, 0.25, 0.25]).log()
    made.snapshot("main-0", prey)
    plain = tiny(
        env={"id": "rock_paper_scissors"},
        learner={"unroll_length": 1, "batch_rows": 256, "learning_rate": 0.02, "entropy_cost": 0.01},
        actors={"num_envs": 128},
    )
    plain["league"] = {
        "preset": "exploit",
        "fixed_opponents": [opponent(made.close(), policy="imported:prey", probability=1.0)],
    }
    start(tmp_path, plain, env_steps=60_000)
    exploiter = load_policy(tmp_path / "run", "main-exploiter-0")
    chances = exploiter.all_probs({"state": np.ones((1, 1), np.float32)}, np.ones((1, 3), bool))[0]  # type: ignore[union-attr]
    assert chances[1] > 0.9, "from a third at the start"
    leases = [event.lease for event in events_of(tmp_path / "run") if isinstance(event, LeaseGranted)]
    assignments = [assignment for lease in leases if lease.home is not None for assignment in lease.assignments]
    assert {policy for assignment in assignments for policy in assignment.policies} == {
        "imported:prey",
        "main-exploiter-0",
    }

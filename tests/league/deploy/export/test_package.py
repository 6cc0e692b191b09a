"""The package of an exported policy: the same play bit for bit, and nothing damaged or hostile is taken in."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from benchmarks.watch.graph_cases import CASES
from league.agents.nets.network import build_network
from league.config.loading import parse_config
from league.core.state.population_config import FixedOpponentConfig
from league.deploy.export.exporter import export_policy
from league.deploy.export.importer import verify_package
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import make, spec_of
from league.errors import CorruptSnapshot, LeagueError
from league.policies.exact.load_policy import load_policy
from league.policies.imported import fits_running_hosts, policies_from_outside
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import copies_at
from league.policies.package import SUMS_FILE, min_numbers, read_package, sums_text
from league.policies.policy_store import network_plain
from league.policies.stored_game import StoredSpec, facts_of
from league.policies.trust import Untrusted
from league.store.snapshots import sha256_hex
from league.store.storage import Storage
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import FOUR, TINY_LSTM, MadeRun, network_of, scaled

MIXED = "main-0-s0*2+main-0-s1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Connect Four whose two snapshots have a memory that decides."""
    made = MadeRun(tmp_path_factory.mktemp("exported") / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", scaled(network_of(made.config, seed=1)))
    made.snapshot("main-exploiter-0", network_of(made.config, seed=3))
    made.snapshot("main-0", scaled(network_of(made.config, seed=2)), version=4, trained_steps=900)
    made.rate(lambda policy: float(policy == "main-0-s1"))
    return made.close()


@pytest.fixture(scope="module")
def package(run: Path) -> Path:
    return export_policy(run, run.parent / "best", player="best").path


@pytest.fixture
def copied(package: Path, tmp_path: Path) -> Path:
    """A package to damage."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in package.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def played(policy: LoadedPolicy | LoadedMixture, *, games: int = 1) -> list[Any]:
    """Every action and every probability of some games that the policy plays against itself."""
    env, record = make(FOUR, num_envs=1), []
    policy.reset(seed=7)
    turn = env.reset(3)
    while games:
        assert turn.action_mask is not None
        obs, mask = {"board": turn.obs["board"][0]}, turn.action_mask[0]
        record.append(policy.probs(obs, mask).tobytes())
        record.append(policy.act(obs, mask))
        turn = env.step(np.array([record[-1]]))
        if turn.ended[0]:
            games -= 1
            policy.reset()
    return record


@pytest.mark.parametrize("name", ["best", MIXED, "main-exploiter-0"])
def test_a_package_plays_as_its_policy_bit_for_bit(run: Path, tmp_path: Path, name: str) -> None:
    path = export_policy(run, tmp_path / "package", player=name).path
    assert played(load_policy(path, seed=5)) == played(load_policy(run, name, seed=5))


def test_a_package_of_a_snapshots_folder_or_of_a_package_has_the_same_weights(run: Path, tmp_path: Path) -> None:
    (copy,) = copies_at(run, "main-0-s1")
    folder = run / "snapshots" / copy.manifest.digest[:2] / copy.manifest.digest
    once = export_policy(folder, tmp_path / "once").path
    twice = export_policy(once, tmp_path / "twice").path
    assert copies_at(once, "auto")[0].weights == copies_at(twice, "auto")[0].weights == copy.weights


def test_the_manifest_holds_the_game_the_memory_and_who_it_is(package: Path) -> None:
    manifest = read_package(package)
    assert manifest.game.facts.spec() == dataclasses.replace(spec_of(FOUR), user_format=None)
    assert manifest.core_state.size == 8
    assert manifest.outputs.dist_params == 7
    assert [field.field for field in manifest.preprocessing] == ["board"]
    (member,) = manifest.members
    assert (member.name, member.snapshot.player, member.snapshot.trained_steps) == ("main-0-s1", "main-0", 900)
    assert manifest.strength["ratings"][0]["games"] > 0


def test_facts_of_a_game_are_all_of_its_spec_but_code() -> None:
    names = {field.name for field in dataclasses.fields(EnvSpec)} - {"user_format"}
    assert set(StoredSpec.__struct_fields__) == names
    for game in ("connect_four", "leduc_poker", "rock_paper_scissors"):
        spec = spec_of(EnvConfig(game))
        facts = msgspec.json.decode(msgspec.json.encode(facts_of(spec)), type=StoredSpec)
        assert facts.spec() == spec


def test_the_card_has_a_header_of_yaml_and_the_limits(package: Path) -> None:
    text = (package / "README.md").read_text()
    _, header, body = text.split("---\n", 2)
    assert "reinforcement-learning" in yaml.safe_load(header)["tags"]
    assert "| main-0-s1 |" in body and "not played against bots" in body


def test_games_against_bots_are_in_the_card_with_intervals_by_team(run: Path, tmp_path: Path) -> None:
    exported = export_policy(run, tmp_path / "package", player="best", games=4, bots=("random",))
    (score,) = exported.manifest.strength["scores"]
    assert score["opponent"] == "random" and score["games"] == 4 and len(score["by_team"]) == 2
    assert score["low"] <= score["score"] <= score["high"]
    assert "| random | 4 |" in (tmp_path / "package" / "README.md").read_text()


def test_the_card_of_a_game_of_one_team_has_mean_returns_and_speaks_of_no_opponents(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("probe_turns", kwargs={"num_seats": 1}))
    made.snapshot("main-0", network_of(made.config, seed=1))
    exported = export_policy(made.close(), tmp_path / "package", player="best", games=4, bots=("random",))
    own, random = exported.manifest.strength["returns"]
    assert (own["name"], random["name"], own["games"]) == ("best", "random", 4)
    assert own["low"] <= own["mean"] <= own["high"]
    text = (tmp_path / "package" / "README.md").read_text()
    assert f"| best | 4 | {own['mean']:.4g} |" in text and "type: mean_reward" in text
    assert not any(word in text for word in ("opponent", "rated game", "not played"))
    unplayed = export_policy(tmp_path / "run", tmp_path / "unplayed", player="best", games=0)
    assert "not played when it was exported" in str(unplayed.manifest.strength["gaps"])


def test_digests_are_what_sha256sum_reads(package: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SUMS_FILE], cwd=package, check=True, timeout=60)


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json", "README.md", SUMS_FILE])
def test_a_flipped_bit_is_found(copied: Path, name: str) -> None:
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    with pytest.raises((CorruptSnapshot, LeagueError)):
        verify_package(copied)


@pytest.mark.parametrize("name", ["model.safetensors", "README.md", SUMS_FILE])
def test_a_missing_file_is_found(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(CorruptSnapshot):
        verify_package(copied)


def test_a_link_is_not_followed(copied: Path, package: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "model.safetensors").symlink_to(package / "model.safetensors")
    with pytest.raises(CorruptSnapshot):
        load_policy(copied)


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A manifest changed by somebody who also made the table of digests anew."""
    plain = json.loads((folder / "manifest.json").read_text())
    change(plain)
    content = json.dumps(plain).encode()
    (folder / "manifest.json").write_bytes(content)
    listed = {name: facts["sha256"] for name, facts in plain["files"].items()}
    (folder / SUMS_FILE).write_text(sums_text({**listed, "manifest.json": sha256_hex(content)}))


def _outside_file(plain: dict[str, Any]) -> None:
    plain["members"][0]["file"] = "../model.safetensors"


def _no_weight(plain: dict[str, Any]) -> None:
    plain["members"][0]["weight"] = 0.0


def _newer(plain: dict[str, Any]) -> None:
    plain["schema_version"] = 99


def _unknown_key(plain: dict[str, Any]) -> None:
    plain["run_this"] = "os.system"


def _huge_field(plain: dict[str, Any]) -> None:
    plain["game"]["facts"]["observations"]["board"]["shape"] = [1 << 20, 1 << 20]


def _other_network(plain: dict[str, Any]) -> None:
    plain["members"][0]["snapshot"]["network"]["hidden"] = [9]


def _wide_network(plain: dict[str, Any]) -> None:
    plain["members"][0]["snapshot"]["network"]["hidden"] = [65536, 65536]


def _wide_memory(plain: dict[str, Any]) -> None:
    plain["members"][0]["snapshot"]["network"]["core_size"] = 65536


def _long_stack(plain: dict[str, Any]) -> None:
    plain["members"][0]["snapshot"]["network"]["core"] = {"kind": "stack", "steps": 1 << 40}


def _wide_input(plain: dict[str, Any]) -> None:
    plain["game"]["facts"]["observations"]["board"]["shape"] = [1 << 22]


def _many_actions(plain: dict[str, Any]) -> None:
    plain["game"]["facts"]["actions"]["num_actions"] = 1 << 40


def _no_network(plain: dict[str, Any]) -> None:
    plain["members"][0]["snapshot"]["network"]["hidden"] = "wide"


HOSTILE = [_outside_file, _no_weight, _newer, _unknown_key, _huge_field, _other_network]
HOSTILE += [_no_network]


def test_the_bound_of_a_network_is_below_its_size() -> None:
    for name, (spec, config) in CASES.items():
        network = build_network(spec, config, seed=0)
        size = sum(parameter.numel() for parameter in network.parameters())
        assert 0 < min_numbers(facts_of(spec), network_plain(config)) <= size, name


@pytest.mark.parametrize("change", HOSTILE)
def test_a_hostile_manifest_is_refused(copied: Path, change: Callable[[dict[str, Any]], None]) -> None:
    rewritten(copied, change)
    with pytest.raises(LeagueError):
        verify_package(copied)


@pytest.mark.parametrize("change", [_wide_network, _wide_memory, _long_stack, _wide_input, _many_actions])
def test_a_network_larger_than_its_weights_is_refused_before_it_is_made(
    copied: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    rewritten(copied, change)
    with pytest.raises(CorruptSnapshot, match="numbers or more"):
        verify_package(copied)


def test_code_that_a_package_names_is_not_loaded(copied: Path, tmp_path: Path) -> None:
    code = tmp_path / "encoder.py"
    code.write_text("raise SystemExit('it ran')")

    def strange(plain: dict[str, Any]) -> None:
        plain["members"][0]["snapshot"]["network"]["encoder"] = f"{code}:build"

    rewritten(copied, strange)
    with pytest.raises(Untrusted):
        verify_package(copied)


def test_a_game_that_is_not_here_does_not_hinder_play(copied: Path, package: Path) -> None:
    def elsewhere(plain: dict[str, Any]) -> None:
        plain["game"]["id"] = plain["members"][0]["snapshot"]["env_id"] = "no_such_package.games:Four"

    rewritten(copied, elsewhere)
    assert "was not loaded" in verify_package(copied).game_note
    assert played(load_policy(copied, seed=5)) == played(load_policy(package, seed=5))


@pytest.mark.parametrize("passed", [0, 3, 9, 22, 27])
def test_an_export_is_there_whole_or_not_at_all(package: Path, tmp_path: Path, passed: int) -> None:
    seen: list[str] = []

    def dies(point: str) -> None:
        seen.append(point)
        if len(seen) > passed:
            raise KeyboardInterrupt

    target = tmp_path / "torn"
    with pytest.raises(KeyboardInterrupt):
        export_policy(package, target, storage=Storage(hook=dies))
    assert target.exists() == (seen[-1] == "folder.before_fsync")
    if not target.exists():
        export_policy(package, target)
    assert verify_package(target).num_bytes > 0


def test_a_package_joins_a_running_league_as_a_fixed_opponent(run: Path, tmp_path: Path) -> None:
    package = export_policy(run, tmp_path / "package", player=MIXED).path
    config = parse_config((run / "config.yaml").read_text(), source="config")
    opponent = FixedOpponentConfig("imported:older", 0.3, (), str(package), "auto")
    joining = policies_from_outside(config, opponent)
    assert [one.copy.weights for one in joining] == [copy.weights for copy in copies_at(run, MIXED)]
    assert [round(one.opponent.probability, 6) for one in joining] == [0.2, 0.1]
    assert not fits_running_hosts(config, joining)


def test_export_and_import_answer_in_json_and_refuse_in_sentences(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "package"
    assert league("export", f"{run}:{MIXED}", target, "--games", 0).code == 0
    ran = league("import", target, "--json")
    assert ran.code == 0 and len(ran.json["manifest"]["members"]) == 2
    again = league("export", run, target)
    assert again.code == 2 and "there already" in again.err
    missing = league("export", f"{run}:nobody", tmp_path / "other", "--games", 0)
    assert missing.code == 2 and "nobody" in missing.err and not (tmp_path / "other").exists()
    (target / "README.md").write_text("changed")
    assert league("import", target).code == 2

"""Folders of somebody else are data: no command and no call runs the code that they name, unless the user says so."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import league.envs.plugins
import league.policies.trust
from league.config.plugin_names import outside_names
from league.config.yaml import parse_yaml
from league.core.state.events import LeagueCreated
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.judge.contenders.bots import bot_policy
from league.judge.matches.evaluation import evaluate_run
from league.judge.recording.recorder import record_game
from league.judge.recording.replay_file import write_replay
from league.operate.history.fork import fork_run
from league.operate.history.rewind import rewind_run
from league.policies.exact.load_policy import load_policy
from league.policies.loading import open_run
from league.policies.trust import Untrusted, trust_places
from league.run.budget import Limits
from league.run.launch import resume, train
from league.see.reports.lineage import read_lineage
from league.see.reports.payoff import read_payoff
from league.see.reports.ratings import read_ratings
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.store.event_codec import EventCodec
from league.store.snapshots import sha256_hex
from tests.league.commands import league as run_league
from tests.league.tiny_runs import ONE_PLAYER, events_of, start, tiny, write_config

GAME = """
from pathlib import Path
from league.envs.games.kuhn import KuhnPoker
Path(__file__).with_name("RAN").touch()

def make(*, num_envs, word=""):
    Path(__file__).with_name("RAN" + word).touch()
    return KuhnPoker(num_envs=num_envs)
"""
NOW = Limits(env_steps=1)
EVIL = {"id": "os:system", "kwargs": {"command": "touch PWNED"}}


@pytest.fixture(autouse=True)
def stranger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """A process that has trusted nothing yet; called, it forgets again what it has trusted."""

    def forget() -> None:
        monkeypatch.setattr(league.envs.plugins, "_ADMITTED", set())

    forget()
    monkeypatch.chdir(tmp_path)
    return forget


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a built-in game."""
    folder = tmp_path_factory.mktemp("plain")
    start(folder, tiny(league=ONE_PLAYER), env_steps=200)
    return folder / "run"


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a game in a file of the user's own."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "game.py").write_text(GAME)
    start(folder, tiny(env={"id": f"{folder}/game.py:make"}, league=ONE_PLAYER), env_steps=200)
    return folder / "run"


def with_env(run: Path, env: dict[str, Any], folder: Path) -> Path:
    """A copy of the run whose configuration names another game, in its file and in its journal's last word."""
    copy = folder / "copy"
    shutil.copytree(run, copy)
    plain = yaml.safe_load((copy / "config.yaml").read_text())
    plain["env"] = env
    (copy / "config.yaml").write_text(yaml.safe_dump(plain))
    return copy


def without_mark(run: Path, folder: Path) -> Path:
    copy = folder / "copy"
    shutil.copytree(run, copy)
    (copy / league.policies.trust.MARK_FILE).unlink()
    return copy


def evil_snapshot(run: Path, folder: Path, **changes: object) -> Path:
    """A snapshot's folder with another manifest, signed as anybody can."""
    source = next(run.glob("snapshots/*/*"))
    shutil.copytree(source, folder / "snapshot")
    path = folder / "snapshot" / "manifest.json"
    manifest = {**json.loads(path.read_text())["manifest"], **changes}
    body = json.dumps(manifest).encode()
    path.write_bytes(msgspec.json.encode({"manifest": msgspec.Raw(body), "sha256": sha256_hex(body)}))
    return folder / "snapshot"


def exploit(run: Path, here: Path) -> object:
    from league.config.run_config import BudgetConfig
    from league.lab.exploit.exploit import exploit_run

    budget = BudgetConfig(env_steps=10)
    return exploit_run(run, player="best", run_dir=here / "new", budget=budget, games=2, seed=0)


OPENERS: dict[str, Callable[[Path, Path], object]] = {
    "load_policy": lambda run, here: load_policy(run),
    "eval": lambda run, here: evaluate_run(run, games=2),
    "open_run": lambda run, here: open_run(run),
    "resume": lambda run, here: resume(run, limits=NOW),
    "resume -s": lambda run, here: resume(run, limits=NOW, overrides=["learner.learning_rate=0.1"]),
    "fork": lambda run, here: fork_run(run, here / "new", at="latest"),
    "exploit": exploit,
    "fixed_opponent": lambda run, here: train_with(
        here, fixed_opponents=[{"policy": "imported:other", "source": str(run)}]
    ),
    "teacher": lambda run, here: train_with(here, teacher=str(run)),
}


def train_with(here: Path, *, fixed_opponents: list[dict[str, object]] | None = None, teacher: str = "") -> object:
    plain = tiny(env={"id": "kuhn_poker"}, league={**ONE_PLAYER, "fixed_opponents": fixed_opponents or []})
    if teacher:
        plain["teacher"] = {"source": teacher}
        plain["learner"]["teacher_cost"] = 0.1
        plain["network"]["value_output"] = "linear"  # as its teacher has it
    return train(write_config(here / "mine", plain), overrides=(), run_dir=here / "new", limits=NOW)


@pytest.mark.parametrize("opener", OPENERS)
def test_a_foreign_run_folder_runs_no_code(opener: str, plain_run: Path, tmp_path: Path) -> None:
    run = with_env(plain_run, EVIL, tmp_path)
    with pytest.raises(LeagueError, match=r"changed by hand|names code that your own `league train` did not put there"):
        OPENERS[opener](run, tmp_path)
    assert not (tmp_path / "PWNED").exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("opener", OPENERS)
def test_a_run_without_the_users_mark_is_foreign(opener: str, own_run: Path, tmp_path: Path) -> None:
    ran = own_run.parent / "RAN"
    ran.unlink(missing_ok=True)
    for name in [name for name in sys.modules if name.startswith("_plugin_game")]:
        del sys.modules[name]
    with pytest.raises(Untrusted, match=r"env\.id"):
        OPENERS[opener](without_mark(own_run, tmp_path), tmp_path)
    assert not ran.exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("opener", ["load_policy", "eval", "resume", "fork", "fixed_opponent", "teacher"])
def test_a_run_of_the_users_own_is_trusted_wherever_it_lies(opener: str, own_run: Path, tmp_path: Path) -> None:
    shutil.copytree(own_run, tmp_path / "elsewhere" / "run")
    OPENERS[opener](tmp_path / "elsewhere" / "run", tmp_path)


def test_a_snapshots_folder_is_the_users_own_inside_their_run_alone(own_run: Path, tmp_path: Path) -> None:
    inside = next(own_run.glob("snapshots/*/*/manifest.json")).parent
    copied = tmp_path / "copied"
    shutil.copytree(inside, copied)
    with pytest.raises(Untrusted):
        load_policy(copied)
    load_policy(inside)


def test_what_is_trusted_by_name_is_then_the_users_own(
    own_run: Path, tmp_path: Path, stranger: Callable[[], None]
) -> None:
    run = without_mark(own_run, tmp_path)
    assert load_policy(run, trust=True)
    stranger()
    assert load_policy(run, env=EnvConfig("kuhn_poker"))
    with pytest.raises(Untrusted):
        resume(run, limits=NOW)
    trust_places([run])
    resume(run, limits=NOW)
    stranger()
    resume(run, limits=NOW)


def test_a_configuration_is_read_once_also_where_the_user_trusts_it(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(text: str, *, source: str) -> object:
        read.append(source)
        return parse_yaml(text, source=source)

    monkeypatch.setattr("league.config.loading.parse_yaml", counted)
    run = without_mark(own_run, tmp_path)
    load_policy(run, trust=True)
    fork_run(run, tmp_path / "new", at="latest", overrides=["name=other"])
    assert read == [str(run / "config.yaml")] * 2


def test_the_trust_of_a_place_is_of_no_other(own_run: Path, tmp_path: Path) -> None:
    evil = with_env(own_run, EVIL, tmp_path)
    trust_places([own_run, tmp_path])
    with pytest.raises(Untrusted, match=r"env\.id"):
        load_policy(evil)
    assert not (tmp_path / "PWNED").exists()


def test_a_fork_and_a_rewind_of_the_users_run_stay_theirs(
    own_run: Path, tmp_path: Path, stranger: Callable[[], None]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(own_run, run)
    fork_run(run, tmp_path / "new", at="latest")
    report = rewind_run(run, at="5", confirm=lambda plan: True)
    assert report is not None
    for path in (run, tmp_path / "new", Path(report.set_aside)):
        stranger()
        open_run(path)


def test_a_replay_in_the_users_run_is_trusted_and_a_copy_elsewhere_is_not(
    own_run: Path, tmp_path: Path, stranger: Callable[[], None]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(own_run, run)
    game = open_run(run)
    file = write_replay(run / "replays" / "one.replay", record_game(game.env, [bot_policy("random", seed=0)] * 2, 0))
    copy = shutil.copy(file, tmp_path / "one.replay")
    for path, code in ((copy, 2), (file, 0)):
        stranger()
        assert run_league("replay", path, "--json", tmp_path / "game.json").code == code
    assert (tmp_path / "game.json").is_file()


def test_a_mark_covers_the_names_and_options_that_the_user_gave_and_no_others(own_run: Path, tmp_path: Path) -> None:
    env = {"id": f"{own_run.parent}/game.py:make", "kwargs": {"word": "-with-this"}}
    for number, changed in enumerate((env, EVIL)):
        with pytest.raises(Untrusted, match=r"env\.id"):
            load_policy(with_env(own_run, changed, tmp_path / str(number)))
    assert not (own_run.parent / "RAN-with-this").exists()


def test_a_mark_of_another_key_is_none(own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    with pytest.raises(Untrusted):
        load_policy(own_run)
    mark = json.loads((own_run / "trust.json").read_text())
    run = without_mark(own_run, tmp_path)
    for broken in ({**mark, "names": ["os:system"]}, {**mark, "hmac": "0" * 64}, {}, [], {"names": 3, "hmac": 4}):
        (run / "trust.json").write_text(json.dumps(broken))
        with pytest.raises(Untrusted):
            load_policy(run)


def test_the_key_is_the_users_alone(own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    start(tmp_path, tiny(env={"id": f"{own_run.parent}/game.py:make"}, league=ONE_PLAYER), env_steps=10)
    key = tmp_path / "other" / "league" / "secret"
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    monkeypatch.setattr(league.envs.plugins, "_ADMITTED", set())
    open_run(tmp_path / "run")
    key.chmod(0o644)
    monkeypatch.setattr(league.envs.plugins, "_ADMITTED", set())
    with pytest.raises(Untrusted):
        open_run(tmp_path / "run")


def test_a_run_without_code_of_others_needs_no_mark(plain_run: Path) -> None:
    assert not (plain_run / "trust.json").exists()
    open_run(plain_run)


@pytest.mark.parametrize(
    "changes",
    [
        {"env_id": "os:system", "env": {"command": "touch PWNED"}},
        {"network": {"encoder": "os:system"}},
        {"network": {"head": "os:system"}},
        {"env_id": "gymnasium:os:Env-v0", "env": {}},
    ],
)
def test_a_foreign_snapshot_runs_no_code(changes: dict[str, object], plain_run: Path, tmp_path: Path) -> None:
    folder = evil_snapshot(plain_run, tmp_path, **changes)
    with pytest.raises(Untrusted):
        load_policy(folder)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    ("env", "outside"),
    [
        ({"id": "connect_four"}, False),
        ({"id": "pettingzoo:classic/chess_v6"}, False),
        ({"id": "gymnasium:CartPole-v1", "kwargs": {"render_mode": "rgb_array"}}, False),
        ({"id": "gymnasium:os:CartPole-v1"}, True),
        ({"id": "gymnasium:GymV26Environment-v0", "kwargs": {"env_id": "os:Env-v0"}}, True),
        ({"id": "gymnasium:Ant-v5", "kwargs": {"xml_file": "/etc/passwd"}}, True),
        ({"id": "pettingzoo:x", "kwargs": {"deep": [{"er": "os:system"}]}}, True),
        ({"id": "os:system"}, True),
        ({"id": "game.py:make"}, True),
    ],
)
def test_an_adapters_id_is_no_way_to_import_a_module(env: dict[str, object], outside: bool) -> None:
    assert bool([*outside_names({"env": env})]) is outside


@pytest.mark.parametrize(
    "section",
    [
        {"network": {"encoder": "x:y"}},
        {"network": {"core": "x:y"}},
        {"network": {"head": "x:y"}},
        {"learner": {"algorithm": "x:y"}},
        {"learner": {"algorithm": {"kind": "x:y", "clip": 0.2}}},
        {"network": {"encoder": {"kind": "x:y", "depth": 3}}},
        {"learner": {"pipeline": {"backend": "x:y"}}},
        {"learner": {"pipeline": {"update_mode": "x:y"}}},
        {"learner": {"pipeline": {"update_mode": {"kind": "gossip", "topology": "x:y"}}}},
        {"learner": {"pipeline": {"update_mode": {"kind": "all_reduce", "compression": {"kind": "x:y", "k": 3}}}}},
        {"league": {"preset": "x:y"}},
        {"league": {"players": [{"matchmaker": "x:y"}]}},
        {"league": {"players": [{"role": "x:y"}]}},
        {"league": {"players": [{"gate": {"test": "x:y"}}]}},
        {"league": {"meta_game": {"solver": "x:y"}}},
        {"league": {"pbt": {"selection": "x:y"}}},
        {"league": {"ratings": {"bots": ["bot:x:y"]}}},
        {"league": {"fixed_opponents": [{"policy": "bot:x:y"}]}},
        {"evaluation": {"bots": ["x:y"]}},
    ],
)
def test_every_swap_point_is_looked_at(section: dict[str, object]) -> None:
    (found,) = outside_names(section)
    assert found.name == "x:y"


def test_trust_is_given_to_a_name_with_its_options() -> None:
    one, other, plain = (
        next(outside_names({"learner": {"algorithm": algorithm}})).entry
        for algorithm in ({"kind": "x:y", "clip": 0.2}, {"kind": "x:y", "clip": 0.3}, "x:y")
    )
    assert len({one, other, plain}) == 3


def test_reading_a_journal_runs_no_preset_of_its_league(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setitem(sys.modules, "my_preset", type(sys)("my_preset"))
    monkeypatch.setattr(sys.modules["my_preset"], "evil", called.append, raising=False)
    settings = LeagueConfig(players=(PlayerConfig(),))
    object.__setattr__(settings, "preset", "my_preset:evil")
    codec = EventCodec({"LeagueCreated": LeagueCreated})
    body = msgspec.json.encode(LeagueCreated(0, 2, (0, 1), settings))
    codec.decode("LeagueCreated", body, seq=1)
    plain = json.loads(body)
    del plain["config"]["ratings"]  # as somebody might who wants the preset to be asked for it
    with pytest.raises(LeagueError, match="nobody here has trusted"):
        codec.decode("LeagueCreated", json.dumps(plain).encode(), seq=1)
    assert called == []


def test_looking_at_a_foreign_run_works_and_runs_nothing(own_run: Path, tmp_path: Path) -> None:
    run = without_mark(own_run, tmp_path)
    (own_run.parent / "RAN").unlink(missing_ok=True)
    for read in (read_status, read_ratings, verify_run, read_payoff, read_lineage):
        read(run)
    assert not (own_run.parent / "RAN").exists()
    assert events_of(run)


def test_the_command_says_what_to_do_and_takes_trust(own_run: Path, tmp_path: Path) -> None:
    run = without_mark(own_run, tmp_path)
    ran = run_league("eval", run, "--games", "2", "--bots", "random")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert "add --trust" in ran.err
    assert run_league("eval", run, "--games", "2", "--bots", "random", "--trust").code == 0

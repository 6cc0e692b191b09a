"""What a user sees: answers, one-sentence errors with exit code 2, and runs that stop, die and go on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from league.cli.options import seconds_of
from league.errors import PREEMPTED, LeagueError
from league.store.run_folder import RunFolder
from tests.league.commands import PROGRESS, ROOT, Ran, league, spawn, wait_for_play, wait_until
from tests.league.tiny_runs import ONE_PLAYER, events_of, start, state_of, tiny, write_config

LONG = ("--for", "300s")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "half": lambda content: content[: len(content) // 2],
    "garbage": lambda content: b"\xa7" * 300,
    "another kind": lambda content: b'{"some": "thing"}',
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short finished command; tests that change it copy it first."""
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=800)
    return folder / "run"


def copy_of(run: Path, folder: Path) -> Path:
    shutil.copytree(run, folder / "copy")
    return folder / "copy"


def is_kept_durably(path: Path) -> bool:
    """True of the files that the others can be made from: the journal, the configuration, and weights."""
    return path.parts[0] in ("journal.db", "config.yaml", "snapshots", "checkpoints")


def is_one_sentence(ran: Ran, *words: str) -> bool:
    """Exit code 2, no traceback, the words in what was said."""
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err + ran.out
    assert ran.err.startswith("league: ")
    for word in words:
        assert word in ran.err, ran.err
    return True


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-7] ^= 4
    path.write_bytes(content)


def in_one_process(commands: Sequence[Sequence[object]], **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run commands one after the other in a new process, which then prints the top-level modules that are loaded."""
    code = (
        "import ast, os, sys\nfrom league.cli.main import main\n"
        "for command in ast.literal_eval(sys.argv[1]):\n"
        "    sys.argv = ['league', *command]\n"
        "    try:\n        main()\n    except SystemExit as left:\n        assert not left.code, left.code\n"
        "print('MODULES', *{name.split('.')[0] for name in sys.modules})\n"
    )
    program = [sys.executable, "-c", code, ascii([[str(word) for word in command] for command in commands])]
    return subprocess.run(program, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, check=False)


def modules_after(*commands: Sequence[object]) -> set[str]:
    """The top-level modules that commands loaded."""
    return set(in_one_process(commands).stdout.decode().rpartition("MODULES")[2].split())


def test_help_answers_at_once_for_it_loads_nothing_heavy() -> None:
    loaded = modules_after(["--help"])
    assert "typer" in loaded
    assert not loaded & {"torch", "ray", "wandb", "pandas", "gymnasium", "pettingzoo", "scipy", "numpy", "yaml"}


def test_looking_at_a_run_loads_no_torch(made: Path) -> None:
    loaded = modules_after(["status", made], ["ratings", made], ["verify", made])
    assert "numpy" in loaded
    assert not loaded & {"torch", "ray", "wandb"}


def test_all_problems_of_a_configuration_are_reported_at_once(tmp_path: Path) -> None:
    plain = tiny(env={"id": "conect_four"}, learner={"unroll_lenght": 4, "batch_rows": -3}, seed=-1)
    plain["budjet"] = {}
    ran = league("train", write_config(tmp_path, plain), "-s", "actors.num_envs=many")
    assert is_one_sentence(ran, "6 problems", "'unroll_length'", "'budget'", "learner.batch_rows: -3", "seed: -1")
    assert "did you mean connect_four?" in ran.err
    assert "actors.num_envs" in ran.err


@pytest.mark.parametrize("command", ["resume", "status", "ratings", "verify", "eval"])
def test_a_missing_run_is_one_sentence(command: str, tmp_path: Path) -> None:
    assert is_one_sentence(league(command, tmp_path / "nowhere"), str(tmp_path / "nowhere"))


def test_a_missing_configuration_is_one_sentence(tmp_path: Path) -> None:
    assert is_one_sentence(league("train", tmp_path / "no.yaml"), "no.yaml", "cannot be read")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("180s", 180), ("1.5m", 90), ("2h", 7200), ("1d", 86400)])
def test_times_are_read_with_their_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "3 weeks", "-5s", "s", "1e3", "nan"])
def test_what_is_no_time_is_refused(text: str, made: Path) -> None:
    with pytest.raises(LeagueError, match="is not a time"):
        seconds_of(text)
    assert is_one_sentence(league("resume", made, f"--for={text}"), "is not a time")


def test_a_run_is_never_written_over(made: Path, tmp_path: Path) -> None:
    before = events_of(made)
    ran = league("train", write_config(tmp_path), "--run-dir", made)
    assert is_one_sentence(ran, "already holds a run", "league resume")
    assert events_of(made) == before


def test_a_run_in_use_is_reported_with_the_process_that_uses_it(made: Path) -> None:
    folder = RunFolder.open(made)
    with folder.lock:
        ran = league("resume", made)
    assert is_one_sentence(ran, "is in use by process", str(os.getpid()))
    assert not folder.lock.held


def test_a_ray_address_that_does_not_answer_is_reported_quickly(tmp_path: Path) -> None:
    config = write_config(tmp_path, tiny(runtime={"kind": "ray", "address": "127.0.0.1:1"}))
    ran = league("train", config, "--run-dir", tmp_path / "run")
    assert is_one_sentence(ran, "No Ray cluster answers at 127.0.0.1:1", "ray start --head")
    assert league("status", tmp_path / "run", "--json").json["phase"] == "failed"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", ("step raised RuntimeError: the dice fell under the table", "step 20", "seed")),
        ("nan_reward", ("game 1, seat 0: a reward is nan", "step 20")),
        ("inf_obs", ("finite", "state")),
    ],
)
def test_a_game_that_breaks_is_one_sentence_and_loses_nothing(how: str, words: tuple[str, ...], tmp_path: Path) -> None:
    env = {"id": "tests.league.bad_envs:breaking", "kwargs": {"how": how}}
    config = write_config(tmp_path, tiny(env=env, league=ONE_PLAYER))
    ran = league("train", config, "--run-dir", tmp_path / "run", "--env-steps", "2000")
    *notices, said = ran.err.splitlines()
    assert all(notice.startswith("The settings rest on less than they should: ") for notice in notices)
    assert is_one_sentence(Ran(ran.code, ran.out, said), *words)
    status = league("status", tmp_path / "run", "--json").json
    assert (status["phase"], status["live"], status["games"]) == ("failed", False, 48)
    assert words[0] in status["message"]
    assert league("verify", tmp_path / "run").code == 0


def test_verify_finds_a_flipped_bit_in_snapshot_and_checkpoint(made: Path, tmp_path: Path) -> None:
    assert league("verify", made).code == 0
    for number, pattern in enumerate(("snapshots/**/*.safetensors", "snapshots/**/manifest.json", "**/*.ckpt")):
        run = copy_of(made, tmp_path / str(number))
        path = next(run.glob(pattern))
        flip_a_bit(path)
        ran = league("verify", run, "--json")
        assert ran.code == 1
        assert ran.json["ok"] is False
        assert any(str(path.parent) in problem for problem in ran.json["problems"])


def test_a_run_whose_snapshots_are_all_corrupt_continues_from_its_checkpoints_and_says_so(
    made: Path, tmp_path: Path
) -> None:
    run = copy_of(made, tmp_path)
    for path in run.glob("snapshots/**/*.safetensors"):
        flip_a_bit(path)
    ran = league("resume", run, "--env-steps", "400")
    assert ran.code == 0
    text = " ".join(ran.out.split())
    assert re.search(r"Snapshot main-0-s\d+ is set aside, the league continues without it: .* is corrupt", text), text


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_whose_derived_files_a_power_cut_spoilt_continues(damage: str, made: Path, tmp_path: Path) -> None:
    run = copy_of(made, tmp_path)
    derived = [path for path in run.rglob("*") if path.is_file() and not is_kept_durably(path.relative_to(run))]
    assert {path.name for path in derived} >= {"status.json", "clock.json", "hosts.safetensors", "journal.mark"}
    for path in derived:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert league("status", run).code == (2 if damage == "another kind" else 0)
    assert league("resume", run, "--env-steps", "400").code == 0
    assert league("verify", run).code == 0


def test_a_player_of_which_nothing_can_be_read_is_one_sentence(made: Path, tmp_path: Path) -> None:
    run = copy_of(made, tmp_path)
    for path in (*run.glob("snapshots/**/*.safetensors"), *run.glob("checkpoints/**/*.ckpt")):
        flip_a_bit(path)
    assert is_one_sentence(league("resume", run, "--env-steps", "800"), "is corrupt", "nothing is left of main-0")


def test_falling_back_from_a_corrupt_checkpoint_is_reported(made: Path, tmp_path: Path) -> None:
    run = copy_of(made, tmp_path)
    for path in run.glob("checkpoints/**/*.ckpt"):
        flip_a_bit(path)
    ran = league("resume", run, "--env-steps", "400")
    assert ran.code == 0
    text = " ".join(ran.out.split())
    assert re.search(r"\.ckpt is corrupt.*Learner main-0 starts from its snapshot main-0-s\d+ instead", text), text
    assert league("verify", run).code == 0


@pytest.mark.parametrize("name", ["hosts.safetensors", "clock.json"])
def test_losing_a_file_that_holds_no_result_is_reported_and_the_run_continues(
    name: str, made: Path, tmp_path: Path
) -> None:
    run = copy_of(made, tmp_path)
    (run / name).write_bytes((run / name).read_bytes()[:-3])
    ran = league("resume", run, "--env-steps", "400")
    assert ran.code == 0
    assert name in ran.out
    assert state_of(run).totals.env_steps > state_of(made).totals.env_steps


def test_status_tells_what_the_journal_holds(made: Path) -> None:
    status = league("status", made, "--json").json
    state = state_of(made)
    assert (status["games"], status["env_steps"]) == (state.totals.games, state.totals.env_steps)
    assert status["snapshots"] == len(state.snapshots)
    assert (status["phase"], status["live"], status["workers"], status["steps_per_s"]) == ("stopped", False, [], 0.0)
    assert [player["player"] for player in status["players"]] == ["main-0"]
    text = league("status", made).out
    assert "main-0" in text
    assert f"{state.totals.games:,} games" in text


def test_ratings_are_shown_strongest_first(made: Path) -> None:
    rows = league("ratings", made, "--json").json["rows"]
    assert {row["policy"] for row in rows} == set(state_of(made).snapshots)
    assert [row["elo"] for row in rows] == sorted((row["elo"] for row in rows), reverse=True)
    assert "95 % interval" in league("ratings", made).out


def test_check_env_tells_a_good_game_from_a_broken_one() -> None:
    assert league("check-env", "tic_tac_toe", "--seconds", 1).code == 0
    ran = league("check-env", "tests.league.bad_envs:breaking", "-k", "how=raise", "--seconds", 0, "--json")
    assert ran.code == 1
    assert any("the dice fell under the table" in problem for problem in ran.json["problems"])
    assert is_one_sentence(league("check-env", "tic_tac_toe", "-k", "seven"), "NAME=VALUE")
    unclosed = league("check-env", "tic_tac_toe", "-k", "a=[1")
    assert unclosed.code == 2 and "a=[1: 1 problem" in unclosed.err and "expected" in unclosed.err


def test_one_broken_rule_is_one_place() -> None:
    ran = league("check-env", "matrix_game", "-k", "payoffs=7")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "matrix_game: breaks the contract in 1 place")


def test_a_check_can_be_given_more_steps_than_its_episodes_have() -> None:
    game = "gymnasium:MountainCarContinuous-v0"
    few = league("check-env", game, "--seconds", 0, "--steps", 5)
    assert "none ended in 5 turns; give more, by --steps N" in few.out
    assert "truncated" in league("check-env", game, "--seconds", 0, "--steps", 1000).out


def test_the_first_signal_drains_and_saves(tmp_path: Path) -> None:
    config, run = write_config(tmp_path, tiny(league=ONE_PLAYER)), tmp_path / "run"
    process = spawn("train", config, "--run-dir", run, *LONG)
    try:
        wait_for_play(process, run)
        status = league("status", run, "--json").json
        assert (status["live"], status["phase"], status["pid"]) == (True, "running", process.pid)
        assert {worker["kind"] for worker in status["workers"]} == {"actor_host", "learner_host"}
        assert {worker["pid"] for worker in status["workers"]} == {process.pid}
        assert is_one_sentence(league("resume", run), "is in use by process", str(process.pid))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == PREEMPTED, err
    assert "Stopping" in out
    assert "it was asked to stop" in out
    state = state_of(run)
    assert not state.leases
    assert all(player.checkpoint is not None for player in state.players.values())
    assert league("status", run, "--json").json["phase"] == "stopped"
    assert league("verify", run).code == 0
    assert league("resume", run, "--env-steps", "300").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_leaves_at_once(number: signal.Signals, tmp_path: Path) -> None:
    flag = tmp_path / "hang"
    env = {"id": "tests.league.bad_envs:breaking", "kwargs": {"how": "hang_when_asked", "flag": str(flag)}}
    config, run = write_config(tmp_path, tiny(env=env, league=ONE_PLAYER)), tmp_path / "run"
    process = spawn("train", config, "--run-dir", run, *LONG)
    try:
        wait_for_play(process, run)
        flag.touch()
        wait_until(lambda: not flag.exists() or process.poll() is not None, "the hanging game")
        process.send_signal(number)
        assert process.stdout is not None
        wait_until(lambda: "Stopping" in process.stdout.readline(), "the first signal's answer")
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + number, err
    assert league("status", run, "--json").json["phase"] == "killed"
    assert league("verify", run).code == 0


def test_a_killed_run_continues_from_its_journal(tmp_path: Path) -> None:
    config, run = write_config(tmp_path, tiny(league=ONE_PLAYER)), tmp_path / "run"
    process = spawn("train", config, "--run-dir", run, *LONG)
    try:
        wait_for_play(process, run)
    finally:
        process.kill()
        process.communicate()
    before = events_of(run)
    status = league("status", run, "--json").json
    assert (status["phase"], status["live"], status["workers"]) == ("killed", False, [])
    assert league("resume", run, "--env-steps", "300").code == 0
    assert events_of(run)[: len(before)] == before
    assert league("verify", run).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("train", "x.yaml", "--env-steps", "-3"),
            ("'--env-steps': Input should be greater than or equal to 1.", "See `league train --help`."),
        ),
        (("train",), ("Missing argument 'CONFIG'", "See `league train --help`.")),
        (("trian", "x.yaml"), ("No such command 'trian'", "See `league --help`.")),
        (("status", "run", "--jsn"), ("No such option", "--json")),
        (("fork", "run", "new"), ("Missing option '--at'",)),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    ran = league(*arguments)
    assert is_one_sentence(ran, *words)
    assert ran.err.count("\n") == 1


def test_without_a_command_the_help_is_shown() -> None:
    ran = league()
    assert ran.code == 2
    assert "Usage: " in ran.out + ran.err
    assert "check-env" in ran.out + ran.err


def test_a_file_that_cannot_be_written_is_one_sentence(made: Path, tmp_path: Path) -> None:
    for option in ("--json", "--csv"):
        ran = league("eval", made, "--bots", "random", "--games", 2, option, tmp_path / "no" / "report")
        assert is_one_sentence(ran, f"{tmp_path}/no/report: No such file or directory.")
        assert ran.err.count("\n") == 1


def test_names_that_the_terminal_cannot_show_are_written_all_the_same(made: Path, tmp_path: Path) -> None:
    run = tmp_path / "Läufe \u6f22 \udcff"
    shutil.copytree(made, run)
    commands = [["status", str(run)], ["ratings", str(run)], ["eval", str(run), "--bots", "random", "--games", "2"]]
    done = in_one_process(commands, PYTHONIOENCODING="ascii")
    said = [line for line in done.stderr.decode().splitlines() if not PROGRESS.fullmatch(line)]
    assert (done.returncode, said) == (0, [])


def test_lists_of_names_may_have_spaces_and_empty_places(made: Path) -> None:
    ran = league("eval", made, "--players", " best , best,", "--bots", " random,,random", "--games", 2)
    assert (ran.code, ran.out.count("random")) == (0, 1)
    assert is_one_sentence(league("eval", made, "--players", " , "), "no policy was named to play")


@pytest.mark.parametrize("command", ["eval", "exploit"])
def test_a_seed_below_zero_is_refused(command: str, made: Path) -> None:
    assert is_one_sentence(league(command, made, "--seed", -1), "'--seed'", "greater than or equal to 0")


def test_a_simulation_of_no_time_is_refused(tmp_path: Path) -> None:
    assert is_one_sentence(league("simulate", write_config(tmp_path), "--for", "0"), "nothing to simulate")


def test_a_report_that_finds_no_room_is_one_sentence(made: Path) -> None:
    assert is_one_sentence(league("report", made, "--html", "/dev/full"), "No space left on device")

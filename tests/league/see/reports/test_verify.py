"""Every kind of harm to a run folder is found, and a sound run holds."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from league.see.reports import verify
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import go_on, head_of, state_of


def change_events(run: Path, statement: str) -> None:
    """Change the journal behind its own back."""
    with sqlite3.connect(run / "journal.db") as connection:
        connection.execute(statement)
    connection.close()


def test_a_sound_run_holds_and_says_what_was_checked(made: Path) -> None:
    report = verify_run(made)
    assert report.problems == ()
    assert (report.events, report.journal_hash) == head_of(made)
    assert len(report.checked) == 5
    assert "holds" in report.text()
    assert json.loads(report.to_json())["ok"] is True


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, 'main-0', 'main-1') WHERE kind = 'LeaseGranted'",
        "UPDATE events SET kind = 'RunStarted' WHERE seq = 7",
        "DELETE FROM events WHERE seq = 9",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "UPDATE states SET payload = replace(payload, '\"games\":', '\"games\":1')",
    ],
)
def test_any_change_of_the_journal_is_found(run: Path, statement: str) -> None:
    change_events(run, statement)
    report = verify_run(run)
    assert report.problems, statement
    assert "does NOT hold" in report.text()


def test_a_missing_snapshot_and_a_missing_checkpoint_are_found(run: Path) -> None:
    info = next(iter(state_of(run).snapshots.values()))
    shutil.rmtree(run / "snapshots" / info.digest[:2] / info.digest)
    for path in run.glob("checkpoints/*/*.ckpt"):
        path.unlink()
    problems = verify_run(run).problems
    assert f"snapshot {info.snapshot_id} is in the journal and not in the store" in problems
    assert "the checkpoint of main-0 that the journal names is gone" in problems


def test_a_flipped_bit_anywhere_in_a_snapshot_is_found(run: Path) -> None:
    for path in [*run.glob("snapshots/*/*/*"), *run.glob("checkpoints/*/*.ckpt")]:
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            broken = bytearray(content)
            broken[place] ^= 1
            path.write_bytes(broken)
            assert verify_run(run).problems, f"{path} at {place}"
        path.write_bytes(content)
    assert verify_run(run).problems == ()


@pytest.mark.parametrize("name", ["clock.json", "hosts.safetensors", "journal.mark"])
def test_a_flipped_bit_beside_the_journal_is_found(run: Path, name: str) -> None:
    content = (run / name).read_bytes()
    rng = np.random.default_rng(0)
    for place in (0, len(content) - 1, *rng.integers(len(content), size=8).tolist()):
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        (run / name).write_bytes(broken)
        assert any(name in problem for problem in verify_run(run).problems), f"{name} at {place}"
    (run / name).unlink()
    assert any(name in problem for problem in verify_run(run).problems)
    (run / name).write_bytes(content)
    assert verify_run(run).problems == ()


def test_a_clock_and_games_of_an_earlier_stop_are_found_and_not_used(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {name: (run / name).read_bytes() for name in ("clock.json", "hosts.safetensors")}
    go_on(run, env_steps=900)
    for name, content in old.items():
        (run / name).write_bytes(content)
    found = verify_run(run).problems
    assert sum("is not the one that the last stop left" in problem for problem in found) == 2, found
    capsys.readouterr()
    go_on(run, env_steps=900)
    assert capsys.readouterr().out.replace("\n", " ").count("is not the one that the last stop left") == 2
    assert verify_run(run).problems == ()


def test_a_journal_that_lost_its_end_does_not_hold(run: Path) -> None:
    (run / "status.json").unlink()
    change_events(run, "DELETE FROM states")
    change_events(run, "DELETE FROM events WHERE seq > (SELECT max(seq) - 2 FROM events)")
    assert any("was durable" in problem for problem in verify_run(run).problems)


def test_a_damaged_stored_state_is_reported_on_resume_and_the_run_continues(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_events(run, "UPDATE states SET payload = x'00' WHERE seq = (SELECT max(seq) FROM states)")
    assert any("the state stored after event" in problem for problem in verify_run(run).problems)
    assert read_status(run).league.games == state_of(run).totals.games > 0
    go_on(run, env_steps=200)
    assert "is not the one that was written: the events are read instead" in capsys.readouterr().out
    assert verify_run(run).problems == ()


def test_a_league_that_counts_other_games_than_its_journal_is_found(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change, words in (
        ("totals", "games, the league counts"),
        ("payoff", "entries, the payoff holds"),
        ("scores", "not to their number"),
    ):
        state = state_of(made)
        if change == "totals":
            state.totals.games += 1
        else:
            results = (0, 0, 0) if change == "scores" else (1, 0, 0)
            home, away = int(state.payoff.home[0]), int(state.payoff.away[0])
            state.payoff.add(home, away, seat=0, results=results, score=1.0, now=0.0)
        monkeypatch.setattr(verify, "verified_state", lambda journal, state=state: state)
        assert any(words in problem for problem in verify_run(made).problems)

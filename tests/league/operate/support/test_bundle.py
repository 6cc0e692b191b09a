"""A bundle helps with a damaged run too, and holds no weights and no secrets."""

from __future__ import annotations

import json
import tarfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import LeagueError
from league.http.token_file import tokens_in
from league.operate.support.bundle import bundle_run
from league.operate.support.redaction import GONE, Redactor, secrets_here
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

NOW = datetime(2026, 11, 22)
WANDB_KEY = "0123456789abcdef0123456789abcdef01234567"
SECRETS = {
    "WANDB_API_KEY": WANDB_KEY,
    "SLACK_WEBHOOK_TOKEN": "canary-of-the-webhook",
    "AWS_SECRET_ACCESS_KEY": "canary/of+the/cloud",
    "DB_PASSWORD": "canary of a password",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run trained by somebody whose environment and home are full of secrets."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, folder / "home")
        start(folder, tiny(league=ONE_PLAYER), env_steps=60)
    return folder / "run"


def plant(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name, value in SECRETS.items():
        patch.setenv(name, value)
    home.mkdir(exist_ok=True)
    (home / ".netrc").write_text("machine api.wandb.ai login user password canary-of-netrc\n")
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_STATE_HOME", str(home / "state"))


def parts_of(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


def test_no_file_of_a_run_holds_a_secret_of_its_user(run: Path) -> None:
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        assert not [name for name, value in SECRETS.items() if value.encode() in content], path
        assert b"canary" not in content, path


def test_a_bundle_has_its_parts_and_no_secret(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, tmp_path)
    folder = RunFolder.open(run)
    tokens = tokens_in(folder.tokens_path)
    log = [*SECRETS.values(), tokens.operator, tokens.reader, "canary-of-netrc"]
    log += [f"password={GONE[1:-1]}-canary", "Authorization: Bearer canary.of-a-header", "postgres://me:canary@host/x"]
    log += ['{"api_key": "canary-in-json"}', "https://hooks.example.org/services/canary", "hf_" + "canaryCANARY" * 3]
    log += ["-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----", "the last line"]
    (run / "logs" / "daemon.log").write_text("\n".join(log))
    made = bundle_run(run, tmp_path / "b.tar.gz", now=NOW)
    assert Path(made.path).stat().st_mode & 0o777 == 0o600
    assert made.problems == ()
    parts = parts_of(tmp_path / "b.tar.gz")
    assert {"README.txt", "status.json", "doctor.txt", "config.yaml", "events.jsonl", "machine.json"} < set(parts)
    everything = "\n".join(parts.values())
    assert "canary" not in everything
    assert not [secret for secret in log[:7] if secret in everything]
    assert parts["logs/daemon.log"].endswith("the last line\n") and parts["logs/daemon.log"].count(GONE) >= len(log) - 2
    assert "weights.safetensors" in parts["files.txt"] and not [name for name in parts if "safetensors" in name]
    events = [json.loads(line) for line in parts["events.jsonl"].splitlines()]
    granted = next(event for event in events if event["kind"] == "LeaseGranted")
    assert granted["event"]["lease"]["token"] == 1, "a fencing token is a number, not a secret"
    with pytest.raises(LeagueError, match="is there already"):
        bundle_run(run, tmp_path / "b.tar.gz", now=NOW)


def test_a_damaged_run_has_a_bundle_that_names_what_is_missing(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "config.yaml").write_bytes(b"\xff\xfe")
    (copy / "journal.db").write_bytes(b"no journal" * 500)
    (copy / "status.json").write_text("{}")
    made = bundle_run(copy, tmp_path / "b.tar.gz", now=NOW)
    parts = parts_of(tmp_path / "b.tar.gz")
    assert {problem.partition(":")[0] for problem in made.problems} >= {"events.jsonl", "status.json", "config.yaml"}
    assert "is damaged" in parts["problems.txt"]
    assert "journal.db" in parts["files.txt"] and parts["machine.json"]


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=8, max_size=40), st.text(max_size=60), st.text(max_size=60))
def test_a_known_secret_never_stays(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret]).clean(before + secret + after).replace(GONE, "") or secret in GONE


def test_ordinary_text_stays_as_it_is() -> None:
    text = (
        "learner.learning_rate: 0.002\ntoken: 7\nmain-0-s3 is frozen after 20000 steps, sha256 " + "ab" * 32 + "\n"
        "http://127.0.0.1:8080/metrics\nurl_from: HOOK\ntoken_from: MY_TOKEN_NAME\nkeys of the configuration: seed\n"
    )
    assert Redactor().clean(text) == text


def test_secrets_are_taken_from_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, tmp_path)
    found = secrets_here(RunFolder(tmp_path / "no-run"))
    assert {*SECRETS.values(), "canary-of-netrc"} <= found

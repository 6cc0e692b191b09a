"""The samples of docs/deploy: the unit by systemd's own linter, the container files by what they name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT = "league@.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / UNIT).read_text()
    assert "/srv/league/venv/bin/league" in text
    unit = tmp_path / UNIT
    unit.write_text(text.replace("/srv/league/venv/bin/league", sys.executable))
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")

    unit.write_text(unit.read_text().replace("KillMode=mixed", "KillMode=gently"))
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert "kill mode" in found.stdout + found.stderr


def test_the_container_file_copies_and_runs_what_is_there() -> None:
    lines = [line.split() for line in (DEPLOY / "Containerfile").read_text().splitlines() if line]
    sources = [source for words in lines if words[0] == "COPY" for source in words[1:-1]]
    assert {"league", "agents", "envs", "pyproject.toml", "constraints.txt"} <= set(sources)
    assert all((ROOT / source).exists() for source in sources)
    config = next(word.strip('",[]') for words in lines if words[0] == "CMD" for word in words if "configs/" in word)
    assert (ROOT / config).is_file()


def test_the_compose_file_builds_that_container_and_keeps_the_runs() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["league"]
    context = (DEPLOY / service["build"]["context"]).resolve()
    assert context == ROOT
    assert (context / service["build"]["dockerfile"]).is_file()
    assert service["volumes"] == ["runs:/srv/league/runs"]
    assert "league resume runs/main" in service["command"][0]

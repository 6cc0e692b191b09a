"""The samples of docs/deploy: the unit by systemd's own linter, the container files by what they name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def documents(name: str) -> dict[str, Any]:
    """Kind -> document of a manifest."""
    return {document["kind"]: document for document in yaml.safe_load_all((DEPLOY / name).read_text())}


CLUSTER_KEYS = {
    "rayVersion",
    "authOptions",
    "enableInTreeAutoscaling",
    "autoscalerOptions",
    "headGroupSpec",
    "workerGroupSpecs",
}
GROUP_KEYS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


def check_cluster(spec: dict[str, Any]) -> None:
    """The rules of KubeRay's schema and of its operator for the parts that we use."""
    assert set(spec) == CLUSTER_KEYS
    assert spec["authOptions"] == {"mode": "token"}
    assert tuple(map(int, spec["rayVersion"].split(".")[:2])) >= (2, 52), "tokens need it"
    assert set(spec["headGroupSpec"]) == {"rayStartParams", "template"}
    for group in spec["workerGroupSpecs"]:
        assert set(group) == GROUP_KEYS
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        assert group["groupName"].isidentifier()
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "Kubernetes takes texts alone"
        (container,) = group["template"]["spec"]["containers"]
        assert set(container["resources"]) == {"requests", "limits"}


def test_the_ray_cluster_and_the_ray_job_have_one_cluster_and_one_volume() -> None:
    cluster, job = documents("raycluster.yaml"), documents("rayjob.yaml")
    check_cluster(cluster["RayCluster"]["spec"])
    assert job["RayJob"]["spec"]["rayClusterSpec"] == cluster["RayCluster"]["spec"]
    assert job["PersistentVolumeClaim"] == cluster["PersistentVolumeClaim"]
    assert {item["apiVersion"] for item in (cluster["RayCluster"], job["RayJob"])} == {"ray.io/v1"}
    version = next(
        line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line.startswith("ray==")
    )
    assert cluster["RayCluster"]["spec"]["rayVersion"] == version, "KubeRay wants the version of the image"


def test_the_head_alone_has_the_run_folder_and_the_job_continues_what_is_there() -> None:
    spec = documents("rayjob.yaml")["RayJob"]["spec"]
    assert set(spec) == {"submissionMode", "backoffLimit", "shutdownAfterJobFinishes", "entrypoint", "rayClusterSpec"}
    head, *workers = (spec["rayClusterSpec"]["headGroupSpec"], *spec["rayClusterSpec"]["workerGroupSpecs"])
    (mount,) = head["template"]["spec"]["containers"][0]["volumeMounts"]
    (volume,) = head["template"]["spec"]["volumes"]
    assert volume["name"] == mount["name"]
    assert (
        volume["persistentVolumeClaim"]["claimName"]
        == documents("rayjob.yaml")["PersistentVolumeClaim"]["metadata"]["name"]
    )
    assert not any("volumes" in group["template"]["spec"] for group in workers)
    assert head["rayStartParams"]["num-cpus"] == "0", "no host competes with the daemon"
    assert f"--run-dir {mount['mountPath']}/main" in spec["entrypoint"]
    assert f"exec league resume {mount['mountPath']}/main" in spec["entrypoint"]

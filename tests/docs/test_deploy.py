"""The samples of docs/deploy: the unit by systemd's linter, containers and the dashboard by what they name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from league.config.run_config import ControlConfig
from league.run.control.exposition import exposition
from league.run.monitor.jsonl_sink import MetricRow
from league.run.monitor.names import METRICS
from league.store.lock import this_process
from league.store.run_folder import AlertStatus, RunFolder, RunStatus

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


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Name -> labels of every metric that a run prints for Prometheus, once it has reported all."""
    folder = RunFolder.create(tmp_path_factory.mktemp("metrics") / "run", config_yaml="")
    values = {metric.of("main-0", seat=1): 1.0 for metric in METRICS.values()}
    folder.metrics_path.write_bytes(msgspec.json.encode(MetricRow(1, 1.0, values)) + b"\n")
    alerts = (AlertStatus("disk_low", "", "it is full", 0.0),)
    folder.write_status(RunStatus(this_process(), "running", 0.0, 0.0, 0, alerts=alerts))
    found = re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", exposition(folder).decode(), re.MULTILINE)
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in found}


def dashboard() -> Any:
    return json.loads((DEPLOY / "grafana.json").read_text())


def test_the_dashboard_asks_for_metrics_and_labels_that_a_run_prints(printed: dict[str, set[str]]) -> None:
    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    queries += [variable["definition"] for variable in dashboard()["templating"]["list"] if "definition" in variable]
    assert len(queries) > 20
    for query in queries:
        names = re.findall(r"league_\w+", query)
        assert names and set(names) <= set(printed), query
        for name, chosen in re.findall(r"(league_\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)=~", chosen)) <= {*printed[name], "instance"}, query
    shown = [
        (target["expr"], label)
        for panel in dashboard()["panels"]
        for target in panel["targets"]
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    ]
    assert shown and all(label in printed[re.findall(r"league_\w+", query)[0]] for query, label in shown)


def test_the_dashboard_is_whole_and_its_panels_lie_side_by_side() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_prometheus_scrapes_the_door_with_a_token() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics" and job["authorization"]["credentials_file"]
    targets = [target for group in job["static_configs"] for target in group["targets"]]
    assert all(not ControlConfig(listen=target).problems() for target in targets)

"""Exported graphs against their networks, and a served policy under load beside what torch alone does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.report import Report, Row
from benchmarks.watch.graph_cases import CASES
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.weights import layout_of
from league.deploy.export.graphs import ONNX, TOLERANCE, TORCH_EXPORT, make_graphs
from league.deploy.export.inputs import random_inputs
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.policies.policy_store import network_plain, spec_hash
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.weights_file import encode_arrays

CONNECT_FOUR = EnvConfig("connect_four")
RATE, P99_MS = 2000.0, 20.0
SECONDS = float(os.environ.get("LEAGUE_LOAD_SECONDS", "10"))
DEADLINE_S = 60.0


def parity(folder: Path) -> list[Row]:
    """Both graphs of a small network for every part of the registries: the largest difference from the network."""
    report = Report()
    for name, (spec, config) in CASES.items():
        network = build_network(spec, config, seed=1).eval().requires_grad_(False)
        for graph, _ in make_graphs([ONNX, TORCH_EXPORT], network, spec, member=name, stem=name):
            report.add(f"{graph.kind} of {name}", graph.parity.max_difference, "difference", at_most=TOLERANCE)
    return report.rows


def serving(folder: Path) -> list[Row]:
    """Requests of Connect Four against a served network of two layers of 128, the load from another process."""
    report = Report()
    network = build_network(spec_of(CONNECT_FOUR), NetworkConfig(), seed=0).eval().requires_grad_(False)
    alone, batched = _torch_rate(network, 1), _torch_rate(network, 64)
    report.add("torch alone, batch 1, one core", alone, "decisions/s")
    report.add("torch alone, batch 64, one core", batched, "decisions/s")
    with _served(folder, network) as (address, process):
        _load(address, 16, 1.0, 0.0)  # the first batches of every size
        before = _cpu_s(process.pid)
        most = _load(address, 32, SECONDS, 0.0)
        spent = _cpu_s(process.pid) - before
        report.add("requests, 32 connections, as many as are answered", most["per_s"], "requests/s", at_least=RATE)
        report.add("their p50", most["p50_ms"], "ms")
        report.add("their p99", most["p99_ms"], "ms", at_most=P99_MS)
        report.add("requests per core-second of the server", most["requests"] / spent, "requests/s")
        report.add("requests per core-second as a share of torch at batch 1", most["requests"] / spent / alone, "")
        report.add("requests per core-second as a share of torch at batch 64", most["requests"] / spent / batched, "")
        steady = _load(address, 32, SECONDS, RATE)
        report.add(
            f"p99 at {RATE:.0f} requests/s, lateness of the load counted", steady["p99_ms"], "ms", at_most=P99_MS
        )
        report.add("requests/s of that load", steady["per_s"], "requests/s", at_least=0.98 * RATE)
        report.add("answers that were no action", most["failed"] + steady["failed"], "answers", at_most=0)
        report.add("other processes that want the processor (load average)", os.getloadavg()[0], "processes")
    return report.rows


def _torch_rate(network: Network, rows: int, *, seconds: float = 2.0) -> float:
    """Decisions a second of the network alone, draws included, on one thread."""
    ((obs, mask),) = random_inputs(spec_of(CONNECT_FOUR), rows=rows, steps=1, seed=0)
    threads, count = torch.get_num_threads(), 0
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    try:
        with torch.inference_mode():
            began = time.process_time()
            while time.process_time() - began < seconds:
                output = network.step(obs, action_mask=mask)
                noise = torch.from_numpy(rng.random((rows, network.head.num_noise), dtype=np.float32))
                network.head.sample(output.logits, noise)
                count += rows
            return count / (time.process_time() - began)
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _served(folder: Path, network: Network) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of `league serve-policy` over a snapshot of the network, and its process."""
    socket = folder / "policy.sock"
    command = [
        sys.executable,
        "-m",
        "league",
        "serve-policy",
        str(_snapshot(folder, network)),
        "--listen",
        f"unix:{socket}",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "is served at" in said, said
        yield f"unix:{socket}", process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)


def _snapshot(folder: Path, network: Network) -> Path:
    spec = spec_of(CONNECT_FOUR)
    layout = layout_of(network)
    arrays = {name: value.detach().numpy() for name, value in network.named_parameters()}
    assert tuple(arrays) == layout.names
    payload = encode_arrays(arrays)
    manifest = SnapshotManifest(
        digest=sha256_hex(payload),
        player="main-0",
        role="main_agent",
        parent=None,
        version=0,
        trained_steps=0,
        env_id=spec.env_id,
        env_spec_hash=spec_hash(spec),
        network=network_plain(NetworkConfig()),
    )
    store = LocalSnapshotStore(folder / "snapshots")
    store.put(payload, manifest)
    return store.folder(manifest.digest)


def _load(address: str, connections: int, seconds: float, rate: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.watch.policy_load", address, "--connections", str(connections)]
    command += ["--seconds", str(seconds), "--rate", str(rate)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S + seconds)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


ROWS = {"export_parity": parity, "policy_serving": serving}

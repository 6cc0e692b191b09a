"""The benchmark of two cores: the arithmetic of its ceilings, its rows, and a measurement of the parts."""

from __future__ import annotations

import json

import pytest

from benchmarks.report import Report
from benchmarks.throughput import cores
from benchmarks.throughput.cores import Ceilings, Pieces, add_runs, ceilings_of, curve_of, settings_of
from benchmarks.throughput.rate_window import Measured
from benchmarks.throughput.roofline import RunParts


@pytest.mark.parametrize(
    ("acting", "one", "two", "expected"),
    [
        (1.0, Pieces(1.0, 1.0), Pieces(0.6, 1.2), Ceilings(2.0, 2.0, 0.0)),
        # The learner takes 3 of 4 units: by itself it is 4/3 as fast, and free cutting makes both cores busy.
        (1.0, Pieces(3.0, 3.0), Pieces(1.5, 3.0), Ceilings(4 / 3, 2.0, 0.67)),
        # Cutting costs as much as it saves.
        (1.0, Pieces(3.0, 3.0), Pieces(3.0, 6.0), Ceilings(4 / 3, 4 / 3, 0.0)),
        (0.0, Pieces(2.0, 2.0), Pieces(1.5, 3.0), Ceilings(1.0, 4 / 3, 1.0)),
        (3.0, Pieces(1.0, 1.0), Pieces(0.5, 1.0), Ceilings(2.0, 2.0, 0.0)),
    ],
)
def test_the_ceiling_is_the_learners_thread_or_half_of_all_work(
    acting: float, one: Pieces, two: Pieces, expected: Ceilings
) -> None:
    found = ceilings_of(acting, one, two)
    assert (found.one_thread, found.two_threads) == pytest.approx((expected.one_thread, expected.two_threads))
    assert found.cut == pytest.approx(expected.cut)


def test_more_cores_help_until_the_learners_own_thread_is_all_that_is_left() -> None:
    pieces = {1: Pieces(1.0, 1.0), 2: Pieces(0.6, 1.2), 4: Pieces(0.4, 1.6)}
    assert curve_of(3.0, pieces) == pytest.approx({1: 1.0, 2: 2.0, 4: 4.0, 8: 4.0 / 0.575, 16: 4.0 / 0.4})


def test_runs_are_compared_at_their_own_shares_of_learnt_plies() -> None:
    parts = RunParts(acting=2.0, recording=2.0, update=1.0, codec=float("inf"))
    one = Measured(env_steps=100, core_seconds=100.0, seconds=100.0, trained=100, snapshots=0)
    half = Measured(env_steps=150, core_seconds=150.0, seconds=100.0, trained=75, snapshots=0)
    twice = Measured(env_steps=190, core_seconds=200.0, seconds=100.0, trained=190, snapshots=0)
    for load, required in ((0.5, ">= 1.8"), (7.0, None)):
        report = Report()
        add_runs(report, "game", {0: [one], 1: [half], 2: [twice]}, parts, load=load)
        rows = {row.name: row for row in report.rows}
        name = "game: two cores over one, {} threads of the learner"
        # Half of the plies learnt from: a ply costs 1 and not 1.5, so that 1.5 as many plies are the same speed.
        assert rows[f"{name.format(1)}, at equal learnt decisions, by the clock (load {load:.1f})"].value == 1.0
        two = rows[f"{name.format(2)}, at equal learnt decisions, by the clock (load {load:.1f})"]
        assert (two.value, two.required) == (pytest.approx(1.9), required)
        assert rows[f"{name.format(2)}, per core-second"].value == pytest.approx(0.95)
        assert rows[f"{name.format(2)}, cores used"].value == 2.0


def test_the_runs_are_one_process_and_an_actor_beside_a_learner_with_threads() -> None:
    alone, beside = (settings_of("connect_four", threads=threads) for threads in (0, 2))
    assert alone["runtime"] == {"kind": "inprocess"}
    assert beside["runtime"] == {"kind": "ray", "address": "local", "actor_hosts": 1}
    assert beside["learner"] == {**alone["learner"], "pipeline": {"threads": 2}}  # type: ignore[dict-item]


def test_parts_are_measured_without_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SECONDS_OF_PARTS", 0.02), ("TURNS", 1), ("UPDATES", 1)):
        monkeypatch.setattr(cores, name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the benchmark sets it for its process, which is this one here
    monkeypatch.setattr(cores.signal, "signal", lambda *_: None)
    assert cores.main(["--env", "gymnasium:CartPole-v1", "--seconds", "0", "--rounds", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    found = {row["name"]: row["value"] for row in rows}
    name = "gymnasium:CartPole-v1: update in {} pieces, {}"
    assert 0 < found[name.format(2, "its own thread")] < found[name.format(2, "all threads")]
    assert 1.0 <= found["gymnasium:CartPole-v1: ceiling of two cores over one, one thread of the learner"] <= 2.0

"""The benchmark of kernels: what it times has the right results, here by the plain counterparts."""

import json

from benchmarks.learner import kernels, speed


def test_errors_are_those_of_rounding_and_times_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "ROWS", 1)
    monkeypatch.setattr(speed, "TURNS_S", 0.0)
    assert kernels.main(["--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]}
    errors = [value for name, value in rows.items() if name.endswith("error")]
    assert len(errors) == 5
    assert all(1e-4 < error < kernels.MAX_ERROR for error in errors)
    assert rows["attention, gradient: time"] > 0.0

"""`league hosts`: each host with its process, its state and its lease."""

from __future__ import annotations

import json
from pathlib import Path

from league.see.reports.hosts import HostRow, read_hosts
from league.store.lock import this_process
from league.store.run_folder import RunStatus, WorkerStatus
from tests.league.run.fake_runtime import Bench


def test_each_host_is_listed_with_what_it_does(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", runtime={"kind": "ray", "actor_hosts": 2})
    bench.runtime.report(*bench.runtime.starts("actor-1"))
    bench.runtime.on_poll = lambda number: (
        bench.operator.submit("park", {"host": "actor-1"}, by="me") if number == 5 else None
    )
    bench.run(env_steps=500)
    assert read_hosts(bench.folder.path).rows == ()
    workers = (WorkerStatus("learner_host", 8, "CPU", "learner-0"), WorkerStatus("actor_host", 9, name="actor-1"))
    status = RunStatus(this_process(), "running", 0.0, 4e9, 1, workers=workers, parked=("actor-0",))
    bench.folder.write_status(status)
    with bench.folder.lock:
        found = read_hosts(bench.folder.path)
    assert found.rows == (
        HostRow("learner-0", "learner_host", "working", 8, device="CPU"),
        HostRow("actor-1", "actor_host", "parked", 9),
        HostRow("actor-0", "actor_host", "lost"),
    )
    assert json.loads(found.to_json())["rows"][1]["state"] == "parked"
    assert [line.split()[:3] for line in found.text().splitlines()[1:]] == [
        ["learner-0", "learner_host", "working"],
        ["actor-1", "actor_host", "parked"],
        ["actor-0", "actor_host", "lost"],
    ]

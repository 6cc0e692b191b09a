"""A run on a cluster of several machines, and what joining, leaving, dying and cut machines cost it.

    python -m benchmarks.durability.cluster --json

The machines are namespaces of this one, see `benchmarks.durability.machines`; the head's holds the daemon and the run
folder, which no other sees. An outside reader follows the journal, as in `league.operate.chaos`. The rows of
the cut wire are those of a wire that is cut for 30 s.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks.durability.machines import ISOLATED, Machines, run_isolated
from benchmarks.durability.struck import add_books
from benchmarks.report import Report
from league.core.state.events import LeaseExpired, LeaseFinished, LeaseGranted
from league.operate.chaos.audit import audit_run, verify
from league.operate.chaos.follower import Command, JournalFollower, Noted, RunFailed, of_kind, wait_for

START_S = 240.0
STEP_S = 180.0
CUT_S = 30.0
JOIN_S = 30.0
"""A machine that joins has work within so many seconds."""

CALM_S = 5.0
MACHINES = 3

SETTINGS: dict[str, object] = {
    "name": "cluster",
    "network": {"hidden": [256, 128]},
    "actors": {"num_envs": 64},
    "learner": {"batch_rows": 32, "precision": "float32"},
    "league": {"lease_steps": 32, "players": [{"role": "main_agent", "gate": {"min_steps": 10_000}}]},
    "runtime": {"kind": "ray", "actor_hosts": 0, "checkpoint_updates": 20, "lease_deadline_s": 40.0},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
    "control": {"door": False},
}
"""One player, and leases of a fraction of a second, on every machine of the cluster."""

OWN_GAME = """
from league.envs.games.connect_four import ConnectFour

def game(*, num_envs):
    return ConnectFour(num_envs=num_envs)
"""
"""A game in the folder that only the head's machine sees."""


@dataclass
class Leases:
    """Leases as an outside reader sees them.

    Fields:
      finished: all of them, in order. hosts: lease -> actor host. last: actor host -> when its newest one finished.
      expired: actor host -> leases given up.
    """

    follower: JournalFollower
    finished: list[Noted] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    expired: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Read what is new."""
        noted = self.follower.poll()
        for _, granted in of_kind(noted, LeaseGranted):
            self.hosts[granted.lease.lease_id] = granted.lease.host
        for item, finished in of_kind(noted, LeaseFinished):
            self.finished.append(item)
            self.last[self.hosts[finished.lease_id]] = item.at
        for _, expired in of_kind(noted, LeaseExpired):
            self.expired[self.hosts[expired.lease_id]] += 1

    def since(self, begun: float) -> set[str]:
        """Actor hosts that have finished a lease since then."""
        return {host for host, at in self.last.items() if at >= begun}


class Scenes:
    """One run and the scenes that are played to it.

    Args:
      folder: for everything.
    """

    def __init__(self, folder: Path) -> None:
        self.run = folder / "runs" / "run"
        self.run.parent.mkdir()
        self.report = Report()
        self._left: set[str] = set()
        self.machines = Machines(folder, hidden=self.run.parent)
        self.leases = Leases(JournalFollower(self.run / "journal.db"))
        game = self.run.parent / "own_game.py"
        game.write_text(OWN_GAME)
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump({**SETTINGS, "env": {"id": f"{game}:game"}}))
        self._log = folder / "log"
        self._command = Command(
            ["train", str(config), "--run-dir", str(self.run), "--for", "3h", "--no-eval"],
            log=self._log,
            environment=self.machines.environment,
        )

    def play(self) -> None:
        """All scenes, one after the other."""
        self.report.add("load of this machine at the start, per core", os.getloadavg()[0] / (os.cpu_count() or 1), "")
        for scene in (self.start, self.joins, self.leaves, self.dies, self.is_cut, self.is_slow, self.ends):
            begun = time.monotonic()
            scene()
            print(
                f"  {scene.__name__}: {time.monotonic() - begun:.0f} s, {len(self.leases.finished)} leases", flush=True
            )

    def start(self) -> None:
        """Head and machines come up together, then the run."""
        self.machines.start_head()
        time.sleep(CALM_S)
        for number in range(1, MACHINES + 1):
            self.machines.power_on(number)
        begun = time.monotonic()
        self._command.start()
        self._until(lambda: len(self.leases.last) >= MACHINES, "leases of every machine", START_S)
        self.report.add("start: machines with finished leases", len(self.leases.last), "machines", at_least=MACHINES)
        self.report.add("start: command to leases of every machine", time.monotonic() - begun, "s")
        seeing = sum(self._sees_the_run(number) for number in self.machines.machines)
        self.report.add("start: machines that see the run folder and the game's file", seeing, "machines", at_most=0)

    def joins(self) -> None:
        """A fourth machine joins."""
        self._left.add(self._joins(4, "join"))

    def leaves(self) -> None:
        """A machine leaves in good order."""
        self._gone("leave", 4, self.machines.leave)
        self.machines.kill(4)

    def dies(self) -> None:
        """A machine dies; another joins in its place."""
        self._gone("kill", 3, self.machines.kill)
        self._joins(3, "kill, replacement")

    def is_cut(self) -> None:
        """The wire of a machine is cut for 30 s; where Ray gives the machine up meanwhile, it is started again."""
        before, begun = self._expired(), time.monotonic()
        self.machines.unplug(2, unplugged=True)
        longest, last = 0.0, begun
        while time.monotonic() - begun < CUT_S:
            count = len(self.leases.finished)
            self._until(lambda: len(self.leases.finished) > count, "leases beside the cut", STEP_S)  # noqa: B023
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        self.machines.unplug(2, unplugged=False)
        mended = time.monotonic()
        self._until(lambda: self._works_again(2, mended), "leases of every machine after the cut", STEP_S)
        took = time.monotonic() - mended
        self.report.add(
            "cut wire, 30 s: longest time without a finished lease of the others", longest, "s", at_most=15.0
        )
        self.report.add("cut wire: mended to leases of every machine", took, "s", at_most=CUT_S + JOIN_S)
        self._add_expired("cut wire", before)

    def is_slow(self) -> None:
        """A machine joins over a wire of 50 ms each way and 10 Mbit/s."""
        host = self._joins(5, "slow link", slow=True)
        count = len(self.leases.finished)
        self._idle(20.0)
        of_host = [
            item
            for item in self.leases.finished[count:]
            if isinstance(item.event, LeaseFinished) and self.leases.hosts[item.event.lease_id] == host
        ]
        self.report.add("slow link: leases in 20 s", len(of_host), "leases", at_least=1)
        self.report.add("slow link: leases given up", self.leases.expired[host], "leases", at_most=0)

    def ends(self) -> None:
        """The run stops in good order, and its books are audited."""
        in_order = self._command.stop()
        self.leases.look()
        self.report.add("end: runs that did not stop in good order", not in_order, "runs", at_most=0)
        found, problems = audit_run(self.run, self.leases.finished), verify(self.run)
        self.report.add(
            "end: finished leases seen by an outside reader", len(self.leases.finished), "leases", at_least=1
        )
        add_books(self.report, lost=found.lost, doubled=found.doubled, off=found.off, problems=problems)
        lost = [line for line in self._log.read_text(errors="replace").splitlines() if "learner-0 was lost" in line]
        self.report.add("learner hosts lost in all scenes", len(lost), "losses", at_most=0)
        for line in (*found.lost, *found.doubled, *found.off, *problems):
            print(f"  FOUND {line}", flush=True)

    def close(self) -> None:
        """End everything."""
        self.leases.follower.close()
        self._command.close()
        self.machines.close()

    def _joins(self, number: int, name: str, *, slow: bool = False) -> str:
        """A machine joins; returns its actor host."""
        known, begun = set(self.leases.last), time.monotonic()
        ray_up = self.machines.power_on(number, slow=slow)
        self._until(lambda: bool(set(self.leases.last) - known), f"a lease of machine {number}", STEP_S)
        (host,) = set(self.leases.last) - known
        took = self.leases.last[host] - ray_up
        self.report.add(f"{name}: Ray's start on the machine", ray_up - begun, "s")
        self.report.add(f"{name}: from there to its first finished lease", took, "s", at_most=JOIN_S)
        return host

    def _gone(self, name: str, number: int, remove: Callable[[int], None]) -> None:
        before, begun, others = self._expired(), time.monotonic(), len(self.machines.machines) - 1
        remove(number)
        self._until(lambda: len(self.leases.since(begun)) >= others, "leases of the others", STEP_S)
        self.report.add(
            f"{name}: to finished leases of every other machine", time.monotonic() - begun, "s", at_most=30.0
        )
        self._idle(CALM_S)
        self._add_expired(name, before)

    def _add_expired(self, name: str, before: Counter[str]) -> None:
        """Rows on the leases given up since; those of the machine that had left before came late."""
        given_up = self._expired() - before
        own = {host: number for host, number in given_up.items() if name == "leave" or host not in self._left}
        self.report.add(f"{name}: leases given up", sum(own.values()), "leases")
        self.report.add(f"{name}: machines whose leases were given up", len(own), "machines", at_most=1)

    def _expired(self) -> Counter[str]:
        self.leases.look()
        return Counter(self.leases.expired)

    def _works_again(self, number: int, since: float) -> bool:
        if not self.machines.is_up(number):  # Ray has ended itself there, as it does when it was given up
            self.machines.kill(number)
            self.machines.power_on(number)
        return len(self.leases.since(since)) >= len(self.machines.machines)

    def _sees_the_run(self, number: int) -> bool:
        return Path(f"/proc/{self.machines.first_inside(number)}/root{self.run}").exists()

    def _idle(self, seconds: float) -> None:
        def look() -> bool:
            self.leases.look()
            return False

        wait_for(look, deadline_s=seconds, look_s=0.1)

    def _until(self, condition: Callable[[], bool], what: str, deadline_s: float) -> None:
        def look() -> bool:
            self.leases.look()
            if self._command.ended is not None:
                raise self._command.failure(f"it ended before there were {what}")
            return condition()

        if not wait_for(look, deadline_s=deadline_s, look_s=0.1):
            raise self._command.failure(f"there were no {what} within {deadline_s:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, help="keep the run and the logs here (default: a folder that is removed)"
    )
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    if ISOLATED not in os.environ:
        return run_isolated("benchmarks.durability.cluster", sys.argv[1:])
    folder = options.folder or Path(tempfile.mkdtemp(prefix="lgc-"))
    folder.mkdir(parents=True, exist_ok=True)
    scenes = Scenes(folder.absolute())
    failure = ""
    try:
        scenes.play()
    except RunFailed as error:
        failure = str(error)
        print(failure, file=sys.stderr)
    finally:
        scenes.close()
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    scenes.report.print(sys.stdout, as_json=options.json)
    return 1 if scenes.report.failed or failure else 0


if __name__ == "__main__":
    sys.exit(main())

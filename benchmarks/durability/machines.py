"""A Ray cluster of several machines on one: network, process, mount and shared-memory namespaces of their own each.

All of it lies in one network namespace without a way out. A machine ends at once, with everything on it, when its
first process is killed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.durability.slow_link import THERE
from league.operate.chaos.follower import RunFailed, wait_for

HEAD = "10.77.0.1"
PORT = 6399
START_S = 120.0
MAX_STARTS = 4
STARTED = b"Ray runtime started"
NEW_NAMESPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
ISOLATED = "LEAGUE_CLUSTER_ISOLATED"
"""Set in the environment of the process that runs inside."""


def run_isolated(module: str, arguments: list[str]) -> int:
    """Run a module of ours in namespaces of its own; returns its exit code. Needs no rights but user namespaces."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, *NEW_NAMESPACES, sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env={**os.environ, ISOLATED: "1"}, check=False).returncode


def ray_environment(token: str) -> dict[str, str]:
    """Ray demands the token of everybody and reports to nobody."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_ADDRESS": f"{HEAD}:{PORT}",
        "OMP_NUM_THREADS": "1",
    }


@dataclass
class Machine:
    """One machine of the cluster.

    Fields:
      process: the first one in its namespaces, seen from here. wire: the process of its slow link, if it has one.
    """

    number: int
    process: subprocess.Popen[bytes]
    address: str
    wire: subprocess.Popen[bytes] | None = None


@dataclass
class Machines:
    """The head, on the bridge of the isolated namespace, and machines that join it.

    Args:
      folder: for Ray's own folders and logs. hidden: a folder that no machine but the head's sees.
      token: of Ray.
    """

    folder: Path
    hidden: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    machines: dict[int, Machine] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Of every process that talks to the cluster."""
        return {**os.environ, **ray_environment(self.token)}

    def start_head(self) -> None:
        """Make the bridge and start Ray's head on it, with one CPU."""
        for words in (
            "link set lo up",
            "link add br0 type bridge",
            f"addr add {HEAD}/24 dev br0",
            "link set br0 up",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        arguments = ["--head", f"--port={PORT}", f"--node-ip-address={HEAD}", "--include-dashboard=false"]
        self._log("head", self._ray(arguments, 0, cpus=1))

    def join(self, number: int, *, slow: bool = False, prelude: str = "true") -> Machine:
        """Start a machine with one CPU; it joins the cluster by itself.

        Args:
          slow: whether its wire delays by 50 ms each way and carries 10 Mbit/s.
          prelude: shell command on the machine before Ray starts.
        """
        address = THERE if slow else f"10.77.0.{number + 1}"
        interface = "slow0" if slow else "eth0"
        script = (
            f"ip link set lo up; mount -t tmpfs tmpfs {self.hidden}; mount -t tmpfs tmpfs /dev/shm; cd /;"
            f" until ip addr show {interface} 2>/dev/null | grep -q {address}; do sleep 0.05; done; {prelude};"
            f" exec {' '.join(self._ray([f'--address={HEAD}:{PORT}', f'--node-ip-address={address}'], number, cpus=1))}"
        )
        process = self._log(f"machine-{number}", ["unshare", *NEW_NAMESPACES, "sh", "-c", script])
        inside = self._first_inside(process)
        machine = Machine(number, process, address)
        if slow:
            machine.wire = self._slow_wire(inside)
        else:
            self._plug_in(number, inside, address)
        self.machines[number] = machine
        return machine

    def power_on(self, number: int, *, slow: bool = False) -> float:
        """Have a machine join, and again where Ray did not come up on it; returns when it did.

        Raises:
          RunFailed: Ray does not come up there.
        """
        for _ in range(MAX_STARTS):
            log = self.folder / f"machine-{number}.log"
            begun = log.stat().st_size if log.exists() else 0
            process = self.join(number, slow=slow).process

            def is_up() -> bool:
                return STARTED in log.read_bytes()[begun:]  # noqa: B023

            wait_for(lambda: is_up() or process.poll() is not None, deadline_s=START_S, look_s=0.1)  # noqa: B023
            if is_up():
                return time.monotonic()
            self.kill(number)
        raise RunFailed(f"Ray did not come up on machine {number}: see {self.folder}")

    def kill(self, number: int) -> None:
        """End a machine at once: no process of it says goodbye."""
        machine = self.machines.pop(number)
        machine.process.kill()
        machine.process.wait()
        if machine.wire is not None:
            machine.wire.kill()
            machine.wire.wait()

    def leave(self, number: int) -> None:
        """Ask Ray on a machine to stop in good order; the machine itself stays until it is killed."""
        subprocess.run(["kill", "-TERM", str(self.first_inside(number))], check=False)

    def unplug(self, number: int, *, unplugged: bool) -> None:
        """Cut the wire of a machine, or mend it."""
        subprocess.run(["ip", "link", "set", f"m{number}", "down" if unplugged else "up"], check=True)

    def is_up(self, number: int) -> bool:
        """True while Ray runs on a machine."""
        return number in self.machines and self.machines[number].process.poll() is None

    def close(self) -> None:
        """End every machine; the head ends with this namespace."""
        for number in list(self.machines):
            self.kill(number)

    def _ray(self, arguments: list[str], number: int, *, cpus: int) -> list[str]:
        common = [f"--num-cpus={cpus}", "--object-store-memory=83886080", "--block"]
        place = f"--temp-dir={self.folder / f'ray{number}'}"
        return [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments, *common, place]

    def _log(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment
            )

    def first_inside(self, number: int) -> int:
        """The first process on a machine, by its number here."""
        return self._first_inside(self.machines[number].process)

    @staticmethod
    def _first_inside(process: subprocess.Popen[bytes]) -> int:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not wait_for(lambda: bool(children.read_text().split()), deadline_s=10.0):
            raise RuntimeError("a machine did not start")
        return int(children.read_text().split()[0])

    @staticmethod
    def _plug_in(number: int, inside: int, address: str) -> None:
        there = f"nsenter -t {inside} -n ip"
        for command in (
            f"ip link add m{number} type veth peer name eth0 netns {inside}",
            f"ip link set m{number} master br0 up",
            f"{there} link set eth0 up",
            f"{there} addr add {address}/24 dev eth0",
            f"{there} route add default via {HEAD}",
        ):
            subprocess.run(command.split(), check=True)

    def _slow_wire(self, inside: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "benchmarks.durability.slow_link", "--pid", str(inside)]
        wire = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert wire.stdout is not None
        if wire.stdout.readline() != b"up\n":
            raise RuntimeError("the slow link did not come up")
        time.sleep(0.1)
        return wire

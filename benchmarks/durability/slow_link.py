"""A slow wire between two network namespaces, for kernels without `tc netem`: a tunnel that delays and paces packets.

    python -m benchmarks.durability.slow_link --pid PID --delay-ms 50 --mbit 10

One end is `slow0` here (10.77.1.1), the other is `slow0` in the namespace of process PID (10.77.1.2).
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN_NO_INFO = 0x1001
NAME = "slow0"
HERE, THERE = "10.77.1.1", "10.77.1.2"
MAX_PACKET = 65_536
MAX_QUEUED = 1000
"""Packets beyond so many on their way are dropped, as a router does."""


class Wire:
    """One direction: packets come out `delay_s` after the line had room for them."""

    def __init__(self, *, delay_s: float, bits_per_s: float) -> None:
        self._delay_s = delay_s
        self._bits_per_s = bits_per_s
        self._free_at = 0.0
        self._packets: deque[tuple[float, bytes]] = deque()

    def put(self, packet: bytes, now: float) -> None:
        """A packet enters; it is dropped where too many are on their way."""
        if len(self._packets) < MAX_QUEUED:
            self._free_at = max(self._free_at, now) + 8.0 * len(packet) / self._bits_per_s
            self._packets.append((self._free_at + self._delay_s, packet))

    def due(self, now: float) -> list[bytes]:
        """The packets that have arrived."""
        arrived = []
        while self._packets and self._packets[0][0] <= now:
            arrived.append(self._packets.popleft()[1])
        return arrived

    def wait_s(self, now: float) -> float:
        """Time until the next packet arrives."""
        return max(self._packets[0][0] - now, 0.0) if self._packets else 1.0


def open_end() -> int:
    """One end of the tunnel, in the present namespace."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", NAME.encode(), IFF_TUN_NO_INFO))
    return end


def open_end_in(pid: int) -> int:
    """One end of the tunnel, in the namespace of a process; this process is back in its own afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    own, other = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(libc, other)
        end = open_end()
        _enter(libc, own)
    finally:
        os.close(own)
        os.close(other)
    return end


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


def configure(pid: int) -> None:
    """Give both ends their addresses."""
    there = ["nsenter", "-t", str(pid), "-n"]
    for prefix, own, other in (([], HERE, THERE), (there, THERE, HERE)):
        subprocess.run([*prefix, "ip", "addr", "add", own, "peer", other, "dev", NAME], check=True)
        subprocess.run([*prefix, "ip", "link", "set", NAME, "up"], check=True)
    subprocess.run([*there, "ip", "route", "add", "default", "via", HERE], check=True)


def forward(one: int, two: int, *, delay_s: float, bits_per_s: float) -> None:
    """Carry packets between two ends until this process is ended."""
    other_of = {one: two, two: one}
    wires = {end: Wire(delay_s=delay_s, bits_per_s=bits_per_s) for end in other_of}
    while True:
        now = time.monotonic()
        ready, _, _ = select.select(list(wires), [], [], min(wire.wait_s(now) for wire in wires.values()))
        now = time.monotonic()
        for end in ready:
            wires[end].put(os.read(end, MAX_PACKET), now)
        for end, wire in wires.items():
            for packet in wire.due(now):
                os.write(other_of[end], packet)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--delay-ms", type=float, default=50.0)
    parser.add_argument("--mbit", type=float, default=10.0)
    options = parser.parse_args()
    one, two = open_end(), open_end_in(options.pid)
    configure(options.pid)
    print("up", flush=True)
    forward(one, two, delay_s=options.delay_ms / 1e3, bits_per_s=options.mbit * 1e6)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Load on a served policy from a process of its own: keep-alive connections that each ask, wait and ask again.

`python -m benchmarks.watch.policy_load unix:PATH --connections 16 --seconds 10` prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time

import numpy as np

from league.deploy.serving.wire import ACT, to_json
from league.envs.protocol import EnvConfig
from league.envs.registry import make

REQUESTS = 64
"""Different observations that are asked about in turn."""


def requests(token: str) -> list[bytes]:
    """Whole HTTP requests for positions of random games of Connect Four."""
    env, rng = make(EnvConfig("connect_four"), num_envs=1), np.random.default_rng(0)
    made: list[bytes] = []
    turn = env.reset(0)
    while len(made) < REQUESTS:
        assert turn.action_mask is not None
        mask = turn.action_mask[0]
        body = to_json({"observation": turn.obs["board"][0].astype(np.int8), "mask": mask})
        bearer = f"authorization: Bearer {token}\r\n" if token else ""
        head = f"POST {ACT} HTTP/1.1\r\nhost: localhost\r\n{bearer}content-length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
        turn = env.step(np.array([rng.choice(np.flatnonzero(mask))]))
    return made


async def client(address: str, asked: list[bytes], first: int, end: float, pause: float) -> tuple[list[float], int]:
    """Latencies in seconds of one connection, and answers that were no action.

    pause: seconds between the starts of two requests; 0 asks as soon as it has its answer.
    """
    if address.startswith("unix:"):
        reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
    else:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
    latencies, failed, number = [], 0, first
    due = time.perf_counter() + pause * (first % REQUESTS) / REQUESTS
    while time.perf_counter() < end:
        if pause:
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        began = due if pause else time.perf_counter()  # a request that had to wait to be sent is late as well
        due += pause
        writer.write(asked[number % len(asked)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        failed += not (head.startswith(b"HTTP/1.1 200") and b'"action"' in body)
        latencies.append(time.perf_counter() - began)
        number += 1
    writer.close()
    return latencies, failed


async def load(address: str, token: str, connections: int, seconds: float, rate: float) -> dict[str, float]:
    """Load from all connections at once; rate: requests/s of all together, 0 for as many as are answered."""
    asked, began = requests(token), time.perf_counter()
    pause = connections / rate if rate else 0.0
    jobs = [client(address, asked, number * 7, began + seconds, pause) for number in range(connections)]
    found = await asyncio.gather(*jobs)
    wall = time.perf_counter() - began
    latencies = np.sort(np.concatenate([np.array(one) for one, _ in found])) * 1000.0
    return {
        "requests": float(len(latencies)),
        "failed": float(sum(failed for _, failed in found)),
        "per_s": len(latencies) / wall,
        "p50_ms": float(np.quantile(latencies, 0.5)),
        "p99_ms": float(np.quantile(latencies, 0.99)),
        "cpu_s": time.process_time(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--token", default="")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0)
    options = parser.parse_args()
    print(
        json.dumps(
            asyncio.run(load(options.address, options.token, options.connections, options.seconds, options.rate))
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

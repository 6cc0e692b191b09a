"""The slow wire of the cluster benchmark delays and paces packets as it says."""

from __future__ import annotations

from benchmarks.durability.slow_link import MAX_QUEUED, Wire


def test_a_packet_comes_out_after_its_time_on_the_line_and_the_delay() -> None:
    wire = Wire(delay_s=0.05, bits_per_s=10e6)
    packet = bytes(12_500)  # 10 ms at 10 Mbit/s
    for _ in range(3):
        wire.put(packet, now=1.0)
    assert wire.due(1.0599) == []
    assert wire.due(1.0601) == [packet]
    assert abs(wire.wait_s(1.0601) - 0.0099) < 1e-9
    assert wire.due(1.0801) == [packet, packet]
    wire.put(packet, now=5.0)
    assert wire.due(5.0601) == [packet], "an idle line is free at once"


def test_packets_beyond_the_queue_are_dropped() -> None:
    wire = Wire(delay_s=0.0, bits_per_s=1e9)
    for _ in range(MAX_QUEUED + 5):
        wire.put(b"x", now=0.0)
    assert len(wire.due(10.0)) == MAX_QUEUED

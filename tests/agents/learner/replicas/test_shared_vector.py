"""A vector in mapped memory: readers never see two versions at once, and a torn one is named."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from league.agents.learner.replicas.shared_vector import SharedVector, TornVectorError


def test_a_reader_never_sees_parts_of_two_versions(tmp_path) -> None:
    size, versions = 20_000, 300
    writer, reader = SharedVector(tmp_path / "v", size), SharedVector(tmp_path / "v", size)
    assert reader.version == 0

    def write() -> None:
        for version in range(1, versions + 1):
            with writer.changing(version=version) as values:
                values[: size // 2] = version
                values[size // 2 :] = version

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while (last := reader.read())[1] < versions:
        seen.add(last[1])
        assert np.all(last[0] == last[1])
    thread.join()
    np.testing.assert_array_equal(reader.read()[0], np.full(size, versions, np.float32))


def test_a_copy_that_a_writer_came_into_is_repeated(tmp_path) -> None:
    writer, reader = SharedVector(tmp_path / "v", 6), SharedVector(tmp_path / "v", 6)
    writer.write(np.ones(6, np.float32), version=1)

    class Interrupted(np.ndarray):  # type: ignore[type-arg]
        """A vector whose first copy is half of one version and half of the next."""

        copies = 0

        def copy(self, order: str = "C") -> np.ndarray:  # type: ignore[override,type-arg]
            Interrupted.copies += 1
            first = np.array(self[:3])
            if Interrupted.copies == 1:
                writer.write(np.full(6, 2.0, np.float32), version=2)
            return np.concatenate([first, np.array(self[3:])])

    reader.values = reader.values.view(Interrupted)
    values, version = reader.read()
    assert (values.tolist(), version, Interrupted.copies) == ([2.0] * 6, 2, 2)


def test_a_change_that_was_not_ended_is_named_and_the_next_change_mends_it(tmp_path) -> None:
    vector = SharedVector(tmp_path / "v", 3)
    vector.write(np.ones(3, np.float32), version=1)
    with pytest.raises(KeyboardInterrupt), vector.changing(version=2) as values:
        values[0] = 2.0
        raise KeyboardInterrupt
    other = SharedVector(tmp_path / "v", 3)
    with pytest.raises(TornVectorError):
        other.read(timeout_s=0.01)
    vector.write(np.full(3, 5.0, np.float32), version=3)
    values, version = other.read()
    assert (values.tolist(), version) == ([5.0, 5.0, 5.0], 3)

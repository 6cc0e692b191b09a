"""Counts what an update asks of torch and of its device: calls, and reads by the host, which wait for the device.

Counts do not depend on the machine, so that they show on a CPU what a GPU would be asked for.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import agents.losses.one_pass
import agents.losses.vtrace

READS = ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__int__", "__float__")
"""Methods of a tensor that wait until its device has computed it."""


class Calls(TorchDispatchMode):
    """Counts every operator that torch dispatches inside the context, views included.

    Attributes:
      by_name: operator -> number of its calls.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.by_name: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Calls of all operators."""
        return self.by_name.total()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count and run."""
        del types
        self.by_name[str(func)] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def counted_reads() -> Iterator[Counter[str]]:
    """Counts the methods of `READS` inside the context, with the losses computed as on a device other than the CPU."""
    found: Counter[str] = Counter()
    plain = {name: getattr(Tensor, name) for name in READS}
    modules: tuple[Any, ...] = (agents.losses.vtrace, agents.losses.one_pass)
    on_host = agents.losses.vtrace.on_host

    def counting(name: str) -> Any:
        def read(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            found[name] += 1
            return plain[name](tensor, *args, **kwargs)

        return read

    for module in modules:
        module.on_host = lambda _: False
    for name in READS:
        setattr(Tensor, name, counting(name))
    try:
        yield found
    finally:
        for module in modules:
            module.on_host = on_host
        for name, method in plain.items():
            setattr(Tensor, name, method)


def calls_of(call: Callable[[], object]) -> Calls:
    """The calls of torch in one call of a function."""
    calls = Calls()
    with calls:
        call()
    return calls


def reads_of(call: Callable[[], object]) -> Counter[str]:
    """The reads by the host in one call of a function."""
    with counted_reads() as reads:
        call()
    return reads

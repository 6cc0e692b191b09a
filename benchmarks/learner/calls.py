"""Counts what an update asks of torch and of its device: calls, and reads by the host, which wait for the device.

Counts do not depend on the machine, so that they show on a CPU what a GPU would be asked for.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._python_dispatch import TorchDispatchMode

import league.agents.losses.one_pass
import league.agents.losses.vtrace
import league.agents.nets.cores.lstm

READS = ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__int__", "__float__")
"""Methods of a tensor that wait until its device has computed it."""


NO_KERNEL = ("empty", "_unsafe_view", "_reshape_alias")
"""Parts of the names of operators that compute nothing and are not marked as views."""
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "linear", "attention")
"""Parts of the names of operators that are bound by arithmetic rather than by memory."""


class Calls(TorchDispatchMode):
    """Counts every operator that torch dispatches inside the context, views included.

    Attributes:
      by_name: operator -> number of its calls.
      kernels: calls that compute, that is all but views and empty tensors.
      bytes: read and written by those of them that are not matrix products.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.by_name: Counter[str] = Counter()
        self.kernels = 0
        self.bytes = 0

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
        result = func(*args, **(kwargs or {}))
        if not func.is_view and not any(part in func.name() for part in NO_KERNEL):
            self.kernels += 1
            if not any(part in func.name() for part in PRODUCTS):
                self.bytes += sum(_bytes(each) for each in (args, kwargs, result))
        return result


def _bytes(value: Any) -> int:
    """Bytes of all tensors in nested arguments; one that is broadcast counts as what is stored."""
    if isinstance(value, Tensor):
        return min(value.nbytes, value.untyped_storage().nbytes())
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


class _OneCall(torch.autograd.Function):
    """Outputs of the form of an LSTM's, in one call forward and one back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, state: Tensor, size: int) -> tuple[Tensor, Tensor]:
        ctx.shapes = rows.shape, state.shape
        return rows.new_zeros(len(rows), size), torch.zeros_like(state)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        rows, state = ctx.shapes
        return gradients[0].new_zeros(rows), gradients[0].new_zeros(state), None


@contextlib.contextmanager
def lstm_as_one_call() -> Iterator[None]:
    """LSTMs inside the context run packed, as on a GPU, and a stand-in takes the place of cuDNN's two calls."""

    def one_call(
        lstm: nn.LSTM, packed: PackedSequence, state: Sequence[Tensor]
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]:
        outputs, last = _OneCall.apply(packed.data, state[0], lstm.hidden_size)  # type: ignore[no-untyped-call]
        return packed._replace(data=outputs), (last, torch.zeros_like(last))

    runs_packed, forward = league.agents.nets.cores.lstm.runs_packed, nn.LSTM.forward
    league.agents.nets.cores.lstm.runs_packed = lambda features: True
    nn.LSTM.forward = one_call  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        league.agents.nets.cores.lstm.runs_packed = runs_packed
        nn.LSTM.forward = forward  # type: ignore[method-assign]


@contextlib.contextmanager
def counted_reads() -> Iterator[Counter[str]]:
    """Counts the methods of `READS` inside the context, with the losses computed as on a device other than the CPU.

    Where there is a GPU only its tensors count; else those of the CPU stand for them.
    """
    found: Counter[str] = Counter()
    plain = {name: getattr(Tensor, name) for name in READS}
    modules: tuple[Any, ...] = (league.agents.losses.vtrace, league.agents.losses.one_pass)
    on_host = league.agents.losses.vtrace.on_host

    def counting(name: str) -> Any:
        def read(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            found[name] += tensor.device.type != "cpu" or not torch.cuda.is_available()
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

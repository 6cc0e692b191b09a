"""A pretended GPU: tensors stay on the CPU but are marked, and the rules of devices hold for the marks.

An operation on tensors of two devices raises as on a GPU, and so does a look of the host at marked memory. Reads of
numbers, for which the host would wait, are counted. Streams and events do nothing, and autocast is that of the CPU.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
CPU = torch.device("cpu")
_ACROSS = {"aten::copy_", "aten::_to_copy"}
_INDEXED = {"aten::index", "aten::index_put_", "aten::index_put", "aten::_unsafe_index", "aten::_index_put_impl_"}
_FACTORIES = {
    *(torch.zeros, torch.ones, torch.empty, torch.full, torch.arange, torch.linspace),
    *(torch.rand, torch.randn, torch.eye),
}


class DeviceMismatchError(RuntimeError):
    """Tensors of two devices met, or the host looked at memory of the GPU."""


class Marks:
    """Memory on the pretended GPU, and the reads of it; weak references keep an address from being used again."""

    def __init__(self) -> None:
        self.reads = 0
        self._on_gpu: dict[int, StorageWeakRef] = {}
        self._anywhere: dict[int, StorageWeakRef] = {}  # made inside torch, as gradients that are zero
        self._call = threading.local()

    @property
    def target(self) -> torch.device | None:
        """The device that the call in progress states for what it makes."""
        return getattr(self._call, "target", None)

    @target.setter
    def target(self, device: torch.device | None) -> None:
        self._call.target = device

    def has(self, tensor: Tensor) -> bool:
        """True if the tensor is on the GPU."""
        return tensor.untyped_storage()._cdata in self._on_gpu

    def is_anywhere(self, tensor: Tensor) -> bool:
        """True if nothing tells where the tensor is."""
        return tensor.untyped_storage()._cdata in self._anywhere

    def put(self, tensor: Tensor) -> None:
        """Mark a tensor as on the GPU."""
        storage = tensor.untyped_storage()
        self._on_gpu[storage._cdata] = StorageWeakRef(storage)

    def put_anywhere(self, tensor: Tensor) -> None:
        """Note that nothing tells where a tensor is."""
        storage = tensor.untyped_storage()
        self._anywhere[storage._cdata] = StorageWeakRef(storage)


class _Dispatch(TorchDispatchMode):
    """Checks the devices of what an operation is given, and marks what it makes."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self._marks = marks

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled, and to skip a compiler torch would load it: five seconds, sympy included."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        marks, name = self._marks, func._schema.name
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        held = [tensor for tensor in tensors if not marks.is_anywhere(tensor) and (tensor.ndim or marks.has(tensor))]
        if name in _INDEXED:
            of_host = {id(leaf) for leaf in tree_leaves(args[1]) if isinstance(leaf, Tensor) and not marks.has(leaf)}
            held = [tensor for tensor in held if id(tensor) not in of_host]
        on_gpu = any(marks.has(tensor) for tensor in held)
        if on_gpu and not all(marks.has(tensor) for tensor in held) and name not in _ACROSS:
            places = ", ".join(f"{'cuda' if marks.has(each) else 'cpu'} {list(each.shape)}" for each in tensors)
            raise DeviceMismatchError(f"{name} got tensors of two devices: {places}")
        if name == "aten::_local_scalar_dense":
            marks.reads += marks.has(args[0])
        given = {tensor.untyped_storage()._cdata for tensor in tensors}
        results = func(*args, **(kwargs or {}))
        for made in tree_leaves(results):
            if isinstance(made, Tensor) and made.untyped_storage()._cdata not in given:
                if marks.target is None and not tensors:
                    marks.put_anywhere(made)
                elif on_gpu if marks.target is None else marks.target.type == "cuda":
                    marks.put(made)
        return results


class _Functions(TorchFunctionMode):
    """Answers for the devices of tensors, and makes and moves them."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self._marks = marks

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs, marks = dict(kwargs or {}), self._marks
        if func == torch.Tensor.device.__get__:
            device = func(*args)
            return GPU if device.type == "cpu" and marks.has(args[0]) else device
        if func == torch.Tensor.is_cuda.__get__:
            return marks.has(args[0])
        if func in (torch.Tensor.numpy, torch.Tensor.__array__) and marks.has(args[0]):
            raise DeviceMismatchError("the host looks at memory of the GPU: copy it with cpu() first")
        if func in (torch.Tensor.tolist, torch.Tensor.nonzero):
            marks.reads += marks.has(args[0])
        if func is torch.Tensor.new_tensor:
            return self._moved(func(*args, **kwargs), GPU if marks.has(args[0]) else CPU, {})
        if func in (torch.tensor, torch.as_tensor):
            device = torch.device(kwargs.pop("device", None) or CPU)
            return self._moved(func(*args, **kwargs), device, {})
        if func is torch.Tensor.cpu:
            marks.reads += marks.has(args[0])
            return self._moved(args[0], CPU, {})
        if func is torch.Tensor.to:
            return self._to(*args, **kwargs)
        kwargs.pop("pin_memory", None)
        device = kwargs.get("device")
        if device is not None and not isinstance(device, int) and torch.device(device).type in ("cpu", "cuda"):
            kwargs["device"] = CPU
            return self._creating(torch.device(device), func, args, kwargs)
        if device is None and func in _FACTORIES:
            return self._creating(CPU, func, args, kwargs)
        return func(*args, **kwargs)

    def _creating(self, device, func, args, kwargs):  # type: ignore[no-untyped-def]
        before, self._marks.target = self._marks.target, device
        try:
            return func(*args, **kwargs)
        finally:
            self._marks.target = before

    def _to(self, tensor, *args, **kwargs):  # type: ignore[no-untyped-def]
        kwargs.pop("non_blocking", None)
        device = kwargs.pop("device", None)
        for value in args:
            if isinstance(value, Tensor):
                device, kwargs["dtype"] = GPU if self._marks.has(value) else value.device, value.dtype
            elif isinstance(value, torch.dtype):
                kwargs["dtype"] = value
            elif isinstance(value, torch.device | str):
                device = value
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        if device is None or torch.device(device).type == "meta" or tensor.device.type == "meta":
            if device is not None:
                kwargs["device"] = device
            return torch.Tensor.to(tensor, **kwargs) if kwargs else tensor
        return self._moved(tensor, torch.device(device), kwargs)

    def _moved(self, tensor, device, kwargs):  # type: ignore[no-untyped-def]
        if self._marks.has(tensor) == (device.type == "cuda"):
            return tensor.to(**kwargs) if kwargs else tensor
        before, self._marks.target = self._marks.target, device
        try:
            with torch._C.DisableTorchFunction():
                return torch.Tensor.to(tensor, dtype=kwargs.get("dtype", tensor.dtype), copy=True)
        finally:
            self._marks.target = before


class _Stream:
    """A stream or an event of a GPU that is never behind."""

    def __init__(self, *_given: object, **_named: object) -> None:
        pass

    def wait_stream(self, _other: object) -> None:
        """Nothing to wait for."""

    def wait_event(self, _event: object) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def record(self, *_given: object) -> None:
        """Nothing to note."""


@contextlib.contextmanager
def pretended_gpu(patch: pytest.MonkeyPatch) -> Iterator[Marks]:
    """Context in which torch has a GPU, in threads started in it too."""
    marks, run = Marks(), threading.Thread.run
    autocast, is_enabled, dtype_of = torch.autocast, torch.is_autocast_enabled, torch.get_autocast_dtype

    def run_marked(thread: threading.Thread) -> None:
        with _Dispatch(marks), _Functions(marks):
            run(thread)

    with patch.context() as patched:
        for name, value in {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "Stream": _Stream,
            "Event": _Stream,
            "current_stream": lambda *_given: _Stream(),
            "stream": lambda _stream: contextlib.nullcontext(),
            "set_stream": lambda _stream: None,
            "synchronize": lambda *_given: None,
        }.items():
            patched.setattr(torch.cuda, name, value)
        patched.setattr(torch, "autocast", lambda _device, **options: autocast("cpu", **options))
        patched.setattr(torch, "is_autocast_enabled", lambda _device: is_enabled("cpu"))
        patched.setattr(torch, "get_autocast_dtype", lambda _device: dtype_of("cpu"))
        patched.setattr(Tensor, "record_stream", lambda *_given: None)
        patched.setattr(threading.Thread, "run", run_marked)
        with _Dispatch(marks), _Functions(marks):
            yield marks

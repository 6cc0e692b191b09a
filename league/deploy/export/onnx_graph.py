"""ONNX: writes a traced network in its format, and runs it by ONNX Runtime to compare."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from league.envs.plugins import install_extra
from league.errors import LeagueError

OPSET = 20
MAX_ONNX_BYTES = (2 << 30) - (1 << 20)
"""A file of this format ends at 2 GiB."""
MISSING = f"ONNX needs the packages onnx, onnxscript and onnxruntime; {install_extra('export')}."


def onnx_bytes(program: torch.export.ExportedProgram, *, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The file of a traced network.

    Args:
      inputs, outputs: names in order; the first axis of each is any number of rows.
    Raises:
      LeagueError: a package is missing, or the network is too large for the format.
    """
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        made = torch.onnx.export(
            program,
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    except ImportError as error:
        raise LeagueError(MISSING) from error
    finally:
        logging.disable(level)
    assert made is not None
    proto = made.model_proto
    if proto.ByteSize() > MAX_ONNX_BYTES:
        raise LeagueError(
            f"the network takes {proto.ByteSize():,} bytes, more than an ONNX file holds: export it without."
        )
    return bytes(proto.SerializeToString())


def onnx_runner(payload: bytes, *, inputs: Sequence[str], outputs: Sequence[str]) -> Callable[..., tuple[Tensor, ...]]:
    """Runs the file on tensors in the order of `inputs`, on one thread of the CPU.

    Raises:
      LeagueError: ONNX Runtime is missing.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise LeagueError(MISSING) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(payload, options, providers=["CPUExecutionProvider"])

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        given = {name: tensor.contiguous().numpy() for name, tensor in zip(inputs, tensors, strict=True)}
        return tuple(torch.from_numpy(np.array(result)) for result in session.run(list(outputs), given))

    return run

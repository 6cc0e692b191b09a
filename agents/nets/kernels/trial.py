"""Tries the kernels of our own once in a process, before a learner uses them: they must run and be right."""

from __future__ import annotations

import functools
import logging

import torch
from torch import Tensor

from league.agents.nets.kernels import feed_forward, sets
from league.agents.nets.kernels.gpu import trust_kernels

SHARED_MEMORY = 200 << 10
"""Bytes of a multiprocessor from which the kernels fit: H100, H200 and their successors."""
ROWS, PLACES, HEADS, WIDTH, HIDDEN = 5, 21, 2, 64, 128
MAX_ERROR = 0.02
"""Relative error of a result in bfloat16; rounding makes 0.003."""

logger = logging.getLogger(__name__)


@functools.cache
def try_kernels(device: torch.device) -> bool:
    """Use the kernels in this process from now on if they are right on a device; a line in the log says why not."""
    if device.type != "cuda":
        return False
    try:
        memory: int = torch.cuda.get_device_properties(device).shared_memory_per_multiprocessor
        if memory < SHARED_MEMORY:
            logger.info("%s is too small for the kernels of transformers; torch's own run", device)
            return False
        error = largest_error(device)
    except Exception as failure:  # boundary: Triton, a C compiler and a driver raise whatever they like
        logger.warning("the kernels of transformers do not run on %s, so torch's slower ones do: %s", device, failure)
        return False
    is_right = error <= MAX_ERROR  # not so of NaN
    if not is_right:
        logger.warning("the kernels of transformers are off by %.1e on %s; torch's slower ones run", error, device)
    trust_kernels(are_right=is_right)
    return is_right


def largest_error(device: torch.device) -> float:
    """Of the kernels of a device, relative to their plain counterparts in float64 on the CPU."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(torch.bfloat16)

    qkv, of_out = drawn(ROWS, PLACES, 3 * WIDTH), drawn(ROWS, PLACES, WIDTH)
    present = torch.rand(ROWS, PLACES, generator=generator) < 0.5
    first, second, bias = drawn(HIDDEN, WIDTH), drawn(WIDTH, HIDDEN), drawn(HIDDEN)
    rows = of_out.view(-1, WIDTH)
    exact, log_sums = sets.attend(qkv.double(), present, HEADS)
    of_exact = sets.attend_backward(of_out.double(), qkv.double(), present, log_sums, HEADS)
    hidden = feed_forward.dense_relu(rows.double(), first.double(), bias.double())
    rounded = hidden.to(torch.bfloat16)
    expected = (exact, of_exact, hidden, *feed_forward.relu_product(rows.double(), second.double(), rounded.double()))

    there = [tensor.to(device) for tensor in (qkv, of_out, present, first, second, bias, rounded)]
    qkv, of_out, present, first, second, bias, rounded = there
    rows = of_out.view(-1, WIDTH)
    out, log_sums = sets.attend(qkv, present, HEADS)
    of_qkv = sets.attend_backward(of_out, qkv, present, log_sums, HEADS)
    dense = feed_forward.dense_relu(rows, first, bias)
    found = (out, of_qkv, dense, *feed_forward.relu_product(rows, second, rounded))
    pairs = zip(found, expected, strict=True)
    errors = [float((one.cpu().double() - other).norm() / other.norm()) for one, other in pairs]
    return float(torch.tensor(errors).max())  # NaN if one is

"""Kernels of a learner's transformers beside torch's own operators, their errors, and the memory floor.

    python -m benchmarks.learner.kernels --json

The sizes are those of a microbatch of the entity workload of `benchmarks.learner.speed`. The floor is the time in which
the machine copies as many bytes as a kernel has to read and write. Errors are against float64, of random numbers, some
of whose places are absent. On a CPU there are no such kernels: the plain counterparts run on a few rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from benchmarks.learner.speed import DEVICE, ON_GPU, UNITS, shortest
from benchmarks.report import Report
from league.agents.nets.attention import EXCLUDED, HIDDEN_FACTOR
from league.agents.nets.kernels import feed_forward, sets
from league.agents.torch_runtime import prepare_process

WIDTH, HEADS = 256, 4
ROWS, CHECKED_ROWS = (8320, 64) if ON_GPU else (8, 4)
COPIED = 1 << 30 if ON_GPU else 1 << 24
DTYPE = torch.bfloat16
MAX_ERROR = 0.01
"""Relative error of 16-bit results; rounding alone makes about 0.002."""


class Cases:
    """The tensors of one size.

    Fields:
      qkv: [N, S, 3 * W]; present: bool [N, S]; gradient: [N, S, W]; hidden: [N * S, O], half of it zeros.
      first, second: weights [O, W] and [W, O] of two dense layers; bias: [O].
    """

    def __init__(self, rows: int) -> None:
        torch.manual_seed(0)
        hidden = HIDDEN_FACTOR * WIDTH
        self.qkv = torch.randn(rows, UNITS, 3 * WIDTH, device=DEVICE).to(DTYPE)
        self.present = torch.rand(rows, UNITS, device=DEVICE) < 0.5
        self.gradient = torch.randn(rows, UNITS, WIDTH, device=DEVICE).to(DTYPE)
        self.hidden = torch.relu(torch.randn(rows * UNITS, hidden, device=DEVICE)).to(DTYPE)
        self.first = (torch.randn(hidden, WIDTH, device=DEVICE) / WIDTH**0.5).to(DTYPE)
        self.second = (torch.randn(WIDTH, hidden, device=DEVICE) / hidden**0.5).to(DTYPE)
        self.bias = torch.randn(hidden, device=DEVICE).to(DTYPE)

    @property
    def rows(self) -> Tensor:
        """Inputs of a dense layer [N * S, W]."""
        return self.gradient.view(-1, WIDTH)


def torch_attention(qkv: Tensor, present: Tensor) -> Tensor:
    """torch's own, with the scores that a layer gives it without the kernel."""
    rows, places, _ = qkv.shape
    query, key, value = qkv.view(rows, places, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    scores = torch.where(present, 0.0, EXCLUDED)[:, None, None].to(qkv.dtype)
    return nn.functional.scaled_dot_product_attention(query, key, value, scores).transpose(1, 2).flatten(2)


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Of a tensor, by the norm."""
    return float((found.double() - exact).norm() / exact.norm())


def add_errors(report: Report) -> None:
    """The errors of all kernels."""
    cases = Cases(CHECKED_ROWS)
    exact = cases.qkv.double().requires_grad_()
    expected = torch_attention(exact, cases.present)
    (of_qkv,) = torch.autograd.grad(expected, exact, cases.gradient.double())
    gathered, log_sums = sets.attend(cases.qkv, cases.present, HEADS)
    found = sets.attend_backward(cases.gradient, cases.qkv, cases.present, log_sums, HEADS)
    of_hidden, sums = feed_forward.relu_product(cases.rows, cases.second, cases.hidden)
    masked = torch.where(cases.hidden > 0, cases.rows.double() @ cases.second.double(), 0.0)
    dense = torch.relu(cases.rows.double() @ cases.first.double().t() + cases.bias.double())
    errors = {
        "attention": relative_error(gathered, expected.detach()),
        "attention, gradient": relative_error(found, of_qkv),
        "gradient behind a ReLU": relative_error(of_hidden, masked),
        "gradient behind a ReLU, sums": relative_error(sums, masked.sum(0)),
        "dense layer with ReLU": relative_error(feed_forward.dense_relu(cases.rows, cases.first, cases.bias), dense),
    }
    for name, error in errors.items():
        report.add(f"{name}: error", error, "", at_most=MAX_ERROR)


def add_times(report: Report) -> None:
    """The time of each kernel, beside torch's own and beside its bytes."""
    cases = Cases(ROWS)
    source = torch.empty(COPIED, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    bandwidth = 2 * COPIED / shortest(lambda: target.copy_(source))
    report.add("copies", bandwidth / 1e12, "TB/s")
    unit = cases.gradient.nbytes
    _, log_sums = sets.attend(cases.qkv, cases.present, HEADS)

    def torch_backward() -> Callable[[], object]:
        leaf = cases.qkv.clone().requires_grad_()
        output = torch_attention(leaf, cases.present)
        return lambda: torch.autograd.grad(output, leaf, cases.gradient, retain_graph=True)

    def torch_relu_product() -> object:
        masked = torch.ops.aten.threshold_backward(cases.rows @ cases.second, cases.hidden, 0)
        return masked, masked.sum(0)

    timed: dict[str, tuple[Callable[[], object], Callable[[], object], int]] = {
        "attention": (
            lambda: sets.attend(cases.qkv, cases.present, HEADS),
            lambda: torch_attention(cases.qkv, cases.present),
            4 * unit,
        ),
        "attention, gradient": (
            lambda: sets.attend_backward(cases.gradient, cases.qkv, cases.present, log_sums, HEADS),
            torch_backward(),
            7 * unit,
        ),
        "gradient behind a ReLU": (
            lambda: feed_forward.relu_product(cases.rows, cases.second, cases.hidden),
            torch_relu_product,
            (1 + 2 * HIDDEN_FACTOR) * unit,
        ),
        "dense layer with ReLU": (
            lambda: feed_forward.dense_relu(cases.rows, cases.first, cases.bias),
            lambda: nn.functional.linear(cases.rows, cases.first, cases.bias).relu_(),
            (1 + HIDDEN_FACTOR) * unit,
        ),
    }
    for name, (kernel, own, num_bytes) in timed.items():
        seconds, own_s = shortest(kernel), shortest(own)
        report.add(f"{name}: time", seconds * 1e3, "ms")
        report.add(f"{name}: share of the memory floor", num_bytes / bandwidth / seconds, "share")
        report.add(f"{name}: speed beside torch's own operators", own_s / seconds, "x")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, time and print; 1 if an error is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args(arguments)
    prepare_process()
    report = Report()
    add_errors(report)
    add_times(report)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())

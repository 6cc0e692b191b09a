"""Networks of one architecture over one batch: matrix products run network by network, everything else once.

Rows are sorted by network. The products read each network's own parameters, so that nothing is copied or padded, and
weights adopted later count at once. Where many networks have a single row each, calls cost more than products: those
run as one product of stacked weights. With more rows, a padded `torch.baddbmm` over stacked copies was never faster.

Shape letters: M networks, N rows of all of them, I inputs, O outputs, H width and L layers of an LSTM.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.acting.row_split import BLOCK_SLOTS, Piece, RowSplit
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.attention import Attention, FeedForward, Norm, TransformerLayer
from league.agents.nets.blocks import Block
from league.agents.nets.centralised import ZerosForMissing
from league.agents.nets.cores.clock import ClockCore
from league.agents.nets.cores.lstm import LSTMCore
from league.agents.nets.cores.stack import StackCore
from league.agents.nets.dict_encoder import Branches
from league.agents.nets.entities import EntityInput, EntityLayer, EntityPool
from league.agents.nets.heads import CategoricalHead, HeadsBlock
from league.agents.nets.image_encoders import (
    BlockMeans,
    PictureInput,
    PlainStage,
    ResidualPair,
    ResidualStage,
    StridedStage,
)
from league.agents.nets.input_scaling import FieldScaling
from league.agents.nets.kernels.dense import Dense, fused_product, prefers_fused
from league.agents.nets.kernels.dense_chain import dense_chain, takes
from league.agents.nets.mlp import DenseLayer, FlattenFields, IdentityInput, InputLayer
from league.agents.nets.network import Network, NetworkOutput, dense_runs
from league.agents.nets.popart import ValueScale
from league.agents.nets.separate_value import TwinCore, TwinHeads, TwinInput, TwinLayer
from league.agents.nets.sub_actions import MultiCategoricalHead

SHARED = (
    *(Network, nn.ModuleDict, nn.ModuleList, nn.Sequential, nn.Identity, nn.Tanh),
    *(
        FieldScaling,
        FlattenFields,
        InputLayer,
        IdentityInput,
        DenseLayer,
        Branches,
        PictureInput,
        BlockMeans,
        ZerosForMissing,
    ),
    *(PlainStage, StridedStage, ResidualStage, ResidualPair),
    *(EntityInput, EntityLayer, EntityPool, TransformerLayer, Attention, FeedForward),
    *(LSTMCore, StackCore, TwinInput, TwinLayer, TwinCore, TwinHeads),
    *(HeadsBlock, CategoricalHead, MultiCategoricalHead, QValuesHead),
)
"""Modules without parameters of their own that treat every row alike and keep rows first: they run once for all."""

MIN_CONVOLUTION = 500_000
"""Multiplications from which oneDNN convolves faster than the plain kernel; each of its calls costs 45 us."""


FEW_ROWS = {torch.float32: 256}
"""Rows of one network up to which packing its weights for the fused kernel, and rows for whole blocks, do not pay.

Other types of numbers always take kernels that are kept for every number of rows, so that only whole blocks will do.
"""


MAX_STACKED, MIN_STACKED = 8_192, 4
"""Largest layer of single rows whose weights are stacked, and the least networks for which it pays: measured with 64
networks, a stack takes 0.09 of the time of single calls at 4 x 16, and 0.36 at 84 x 128."""


class GroupedDense(nn.Module):
    """The same layer of M networks, and those that follow it directly: each network runs through all of them."""

    def __init__(self, split: RowSplit, layers: Sequence[Dense]) -> None:
        super().__init__()
        self._split = split
        self._num_outputs = layers[0].out_features
        self._chains = [[_Layer(layer.weight, layer.weight.t(), layer.bias, layer.activation)] for layer in layers]

    @property
    def weight(self) -> Tensor:
        """The first network's weight [O, I]; all have its dtype."""
        return self._chains[0][0].weight

    def then(self, following: GroupedDense) -> None:
        """Take over the layer that follows directly, so that nothing is put together in between."""
        self._num_outputs = following._num_outputs
        for chain, more in zip(self._chains, following._chains, strict=True):
            chain.extend(more)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O], N rows in the first axis."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs, few = [], FEW_ROWS.get(rows.dtype, BLOCK_SLOTS)
        pieces = self._split.pieces(rows.shape[0])
        if MIN_STACKED <= len(pieces) == rows.shape[0] and self._is_small:
            return self._of_single_rows(rows, pieces).view(*inputs.shape[:-1], self._num_outputs)
        compiled = takes(rows, self._chains[0])
        for piece in pieces:
            if compiled:
                outputs.append(dense_chain(piece.own_rows(rows), self._chains[piece.network]))
                continue
            is_large = piece.size > few
            values = piece.block_rows(rows) if is_large else piece.own_rows(rows)
            for layer in self._chains[piece.network]:
                if is_large and prefers_fused(values, layer.weight):
                    values = fused_product(values, layer.weight, layer.bias, activation=layer.activation)
                elif layer.activation == "relu":
                    values = torch._addmm_activation(layer.bias, values, layer.transposed)
                else:
                    values = torch.addmm(layer.bias, values, layer.transposed)
            outputs.append(piece.own_of_block(values) if is_large else values)
        return torch.cat(outputs).view(*inputs.shape[:-1], self._num_outputs)

    @property
    def _is_small(self) -> bool:
        return all(
            layer.weight.dtype == torch.float32 and layer.weight.numel() <= MAX_STACKED for layer in self._chains[0]
        )

    def _of_single_rows(self, rows: Tensor, pieces: Sequence[Piece]) -> Tensor:
        """[N, I] -> [N, O], a row of each of N networks."""
        values, chains = rows.unsqueeze(1), [self._chains[piece.network] for piece in pieces]
        for layers in zip(*chains, strict=True):
            weights, biases = (torch.stack([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
            values = torch.baddbmm(biases.unsqueeze(1), values, weights.mT)
            if layers[0].activation == "relu":
                values = values.relu_()
        return values.squeeze(1)


@dataclass(frozen=True)
class _Layer:
    """The parameters of a network's dense layer: weight [O, I], a view of it [I, O], bias [O], `Dense.activation`."""

    weight: Tensor
    transposed: Tensor
    bias: Tensor
    activation: str


class Merged(nn.Module):
    """Stands where a layer was that another one before it runs as well; gives its inputs back."""

    def __init__(self, layer: GroupedDense) -> None:
        super().__init__()
        self.weight = layer.weight  # for its dtype

    def forward(self, outputs: Tensor) -> Tensor:
        """The same."""
        return outputs


class GroupedLSTM(nn.Module):
    """The same LSTM of M networks, for one step."""

    def __init__(self, split: RowSplit, layers: Sequence[nn.LSTM]) -> None:
        super().__init__()
        self._split = split
        self._size = layers[0].hidden_size
        self._weights_of: list[list[list[Tensor]]] = [[list(each) for each in layer.all_weights] for layer in layers]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Those of the first network; all have their dtype."""
        return self._weights_of[0]

    def forward(self, features: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [N, 1, H] and state [L, N, H] twice, of features [N, 1, I] and the state before."""
        inputs, hiddens, cells = features.squeeze(1), list[Tensor](), list[Tensor]()
        for layer, (hidden, cell) in enumerate(zip(*state, strict=True)):
            gates = inputs.new_empty(inputs.shape[0], 4 * self._size)
            split = self._split
            pieces = split.pieces(inputs.shape[0])
            for piece, own, own_hidden, into in zip(
                pieces, split.of(inputs), split.of(hidden), split.of(gates), strict=True
            ):
                of_input, of_hidden, input_bias, hidden_bias = self._weights_of[piece.network][layer]
                torch.addmm(input_bias + hidden_bias, own, of_input.t(), out=into)
                into.addmm_(own_hidden, of_hidden.t())
            opened = gates.sigmoid()
            input_gate, forget_gate, _, output_gate = opened.chunk(4, dim=1)
            candidate = gates[:, 2 * self._size : 3 * self._size].tanh()
            cells.append(torch.addcmul(forget_gate * cell, input_gate, candidate))
            inputs = output_gate * cells[-1].tanh()
            hiddens.append(inputs)
        return inputs.unsqueeze(1), (torch.stack(hiddens), torch.stack(cells))


class GroupedConvolution(nn.Module):
    """The same convolution of M networks."""

    def __init__(self, split: RowSplit, layers: Sequence[nn.Conv2d]) -> None:
        super().__init__()
        self._split = split
        self._layers = nn.ModuleList(layers)  # an encoder looks for the dtype of its parameters
        self._parameters_of = [(layer.weight, layer.bias) for layer in layers]
        self._kernel, self._stride, self._padding = (layers[0].kernel_size, layers[0].stride, layers[0].padding)

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C', H', W']."""
        weight = self._parameters_of[0][0]
        work = pictures.shape[2] * pictures.shape[3] * weight.numel()
        parts = []
        for piece in self._split.pieces(pictures.shape[0]):
            weight, bias = self._parameters_of[piece.network]
            own = piece.block_rows(pictures)
            is_small = own.shape[0] * work < MIN_CONVOLUTION and own.dtype == torch.float32
            if is_small and own.device.type == "cpu":
                part = torch.ops.aten._slow_conv2d_forward(own, weight, self._kernel, bias, self._stride, self._padding)
            else:
                part = nn.functional.conv2d(own, weight, bias, self._stride, self._padding)
            parts.append(piece.own_of_block(part))
        return torch.cat(parts)


class GroupedNorm(nn.Module):
    """The same layer normalisation of M networks: every row at once, then each network's scale and offset.

    Like `Norm`, it computes in float32 and keeps the dtype of its input.
    """

    def __init__(self, split: RowSplit, layers: Sequence[Norm]) -> None:
        super().__init__()
        self._split = split
        self._shape, self._eps = layers[0].normalized_shape, layers[0].eps
        self._parameters_of = [(layer.weight, layer.bias) for layer in layers]

    def forward(self, features: Tensor) -> Tensor:
        """[N, ..., W] -> the same."""
        normal = nn.functional.layer_norm(features.float(), self._shape, eps=self._eps)
        for piece in self._split.pieces(features.shape[0]):
            weight, bias = self._parameters_of[piece.network]
            own = piece.own_rows(normal)
            torch.addcmul(bias, own, weight, out=own)
        return normal.to(features.dtype)  # rounded once, as the kernel does


class GroupedValueScale(nn.Module):
    """The same scale of values of M networks."""

    def __init__(self, split: RowSplit, scales: Sequence[ValueScale]) -> None:
        super().__init__()
        self._split = split
        self._scales = scales

    def forward(self, raw: Tensor) -> Tensor:
        """[N, ...] -> [N, ...]."""
        pieces = self._split.pieces(raw.shape[0])
        return torch.cat([self._scales[piece.network](piece.own_rows(raw)) for piece in pieces])


class GroupedClock(nn.Module):
    """The same clock core of M networks, for one step."""

    def __init__(self, split: RowSplit, cores: Sequence[ClockCore]) -> None:
        super().__init__()
        self._split = split
        self._cores = cores

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [N, 1, D] and state [N, 1], of the same before."""
        parts = [
            self._cores[piece.network](piece.own_rows(features), resets=resets, core=piece.own_rows(core))
            for piece in self._split.pieces(features.shape[0])
        ]
        outputs, states = zip(*parts, strict=True)
        return torch.cat(outputs), torch.cat(states)


GROUPED: Mapping[type[nn.Module], type[nn.Module]] = {
    Dense: GroupedDense,
    nn.LSTM: GroupedLSTM,
    nn.Conv2d: GroupedConvolution,
    Norm: GroupedNorm,
    ValueScale: GroupedValueScale,
    ClockCore: GroupedClock,
}
"""Modules with parameters -> what replaces them; its arguments are the split and the module of each network."""


def can_group(network: Network) -> bool:
    """True if every module of the network is known to treat rows alike; those of other authors are not."""
    todo: list[nn.Module] = [network]
    while todo:
        module = todo.pop()
        if type(module) in GROUPED:
            continue
        if type(module) not in SHARED:
            return False
        todo.extend(module.children())
    return True


class NetworkGroup:
    """M networks of one architecture; `can_group` holds for them.

    Args:
      networks: their parameters are read where they are, so that what they adopt later counts here too.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        self._split = RowSplit()
        # A copy of the first network in which every layer with parameters is replaced by that layer of all networks.
        replaced: dict[int, object] = {}
        modules = [dict(network.named_modules()) for network in networks]
        for name, module in modules[0].items():
            if type(module) in GROUPED:
                replaced[id(module)] = GROUPED[type(module)](self._split, [each[name] for each in modules])
        self._together: Network = copy.deepcopy(networks[0], replaced)
        _merge_layers(self._together.blocks)

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor, action_mask: Tensor | None, sizes: Sequence[int]
    ) -> NetworkOutput:
        """As `Network.step`, for rows sorted by network. Args: sizes: see `RowSplit.set`."""
        self._split.set(sizes)
        return self._together.step(obs, core=core, action_mask=action_mask)


def _merge_layers(blocks: Sequence[Block]) -> None:
    """Let the first of several dense layers that follow one another directly run all of them."""
    for run, layers in dense_runs(blocks, GroupedDense):
        for block, layer in zip(run[1:], layers[1:], strict=True):
            layers[0].then(layer)
            block.module.add_module("linear", Merged(layer))

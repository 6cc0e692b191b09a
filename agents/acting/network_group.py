"""Networks of one architecture over one batch: matrix products run network by network, everything else once.

Rows are sorted by network. The products read each network's own parameters, so that nothing is copied or padded, and
weights adopted later count at once. A padded `torch.baddbmm` over stacked copies was no faster at any size.

Shape letters: M networks, N rows of all of them, I inputs, O outputs, H width and L layers of an LSTM.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from agents.nets.centralised import ZerosForMissing
from agents.nets.dense import Dense, prefers_fused, product
from agents.nets.dict_encoder import Branches
from agents.nets.heads import CategoricalHead, HeadsBlock
from agents.nets.image_encoders import BlockMeans, PictureInput, PlainStage, ResidualPair, ResidualStage, StridedStage
from agents.nets.lstm import LSTMCore
from agents.nets.mlp import DenseLayer, FlattenFields, IdentityInput, InputLayer
from agents.nets.network import Network, NetworkOutput
from agents.nets.popart import ValueScale
from agents.nets.separate_value import TwinCore, TwinHeads, TwinInput, TwinLayer
from agents.nets.sub_actions import MultiCategoricalHead

SHARED = (
    *(Network, nn.ModuleDict, nn.ModuleList, nn.Sequential, nn.Identity, nn.Tanh),
    *(FlattenFields, InputLayer, IdentityInput, DenseLayer, Branches, PictureInput, BlockMeans, ZerosForMissing),
    *(PlainStage, StridedStage, ResidualStage, ResidualPair),
    *(LSTMCore, TwinInput, TwinLayer, TwinCore, TwinHeads, HeadsBlock, CategoricalHead, MultiCategoricalHead),
)
"""Modules without parameters of their own that treat every row alike and keep rows first: they run once for all."""

MIN_CONVOLUTION = 500_000
"""Multiplications from which oneDNN convolves faster than the plain kernel; each of its calls costs 45 us."""


FEW_ROWS = 64
"""Rows of one network up to which packing its weights for the fused kernel does not pay."""


class RowSplit:
    """The division of the rows at hand: which networks have some, and how many each."""

    def __init__(self) -> None:
        self.present: list[int] = []
        self.sizes: list[int] = []
        self.total = 0

    def set(self, sizes: Sequence[int]) -> None:
        """Args: sizes: [M] numbers of rows, in the order of the rows."""
        self.present = [index for index, size in enumerate(sizes) if size]
        self.sizes = [sizes[index] for index in self.present]
        self.total = sum(self.sizes)

    def of(self, rows: Tensor) -> tuple[Tensor, ...]:
        """A view for each network that is present, of a tensor with N rows or a multiple of N."""
        times = rows.shape[0] // self.total
        return torch.split(rows, self.sizes if times == 1 else [size * times for size in self.sizes])


class GroupedDense(nn.Module):
    """The same layer of M networks."""

    def __init__(self, split: RowSplit, layers: Sequence[Dense]) -> None:
        super().__init__()
        self._split = split
        self._activation = layers[0].activation
        self._num_outputs = layers[0].out_features
        self._parameters_of = [(layer.weight, layer.weight.t(), layer.bias) for layer in layers]

    @property
    def weight(self) -> Tensor:
        """The first network's weight [O, I]; all have its dtype."""
        return self._parameters_of[0][0]

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O], N rows in the first axis."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs = rows.new_empty(rows.shape[0], self._num_outputs)
        plain: list[Tensor] = []
        pieces = zip(self._split.present, self._split.of(rows), self._split.of(outputs), strict=True)
        for index, own, into in pieces:
            weight, transposed, bias = self._parameters_of[index]
            if own.shape[0] > FEW_ROWS and prefers_fused(own, weight):
                into.copy_(product(own, weight, bias, activation=self._activation))
            else:
                plain.append(torch.addmm(bias, own, transposed, out=into))
        if self._activation == "relu":
            for values in [outputs] if len(plain) == len(self._split.present) else plain:
                values.relu_()
        return outputs.view(*inputs.shape[:-1], self._num_outputs)


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
            pieces = zip(split.present, split.of(inputs), split.of(hidden), split.of(gates), strict=True)
            for index, own, own_hidden, into in pieces:
                of_input, of_hidden, input_bias, hidden_bias = self._weights_of[index][layer]
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
        for index, own in zip(self._split.present, self._split.of(pictures), strict=True):
            weight, bias = self._parameters_of[index]
            if own.shape[0] * work < MIN_CONVOLUTION and own.dtype == torch.float32:
                part = torch.ops.aten._slow_conv2d_forward(own, weight, self._kernel, bias, self._stride, self._padding)
            else:
                part = nn.functional.conv2d(own, weight, bias, self._stride, self._padding)
            parts.append(part)
        return torch.cat(parts)


class GroupedValueScale(nn.Module):
    """The same scale of values of M networks."""

    def __init__(self, split: RowSplit, scales: Sequence[ValueScale]) -> None:
        super().__init__()
        self._split = split
        self._scales = scales

    def forward(self, raw: Tensor) -> Tensor:
        """[N, ...] -> [N, ...]."""
        scales = [self._scales[index] for index in self._split.present]
        return torch.cat([scale(own) for scale, own in zip(scales, self._split.of(raw), strict=True)])


GROUPED: Mapping[type[nn.Module], type[nn.Module]] = {
    Dense: GroupedDense,
    nn.LSTM: GroupedLSTM,
    nn.Conv2d: GroupedConvolution,
    ValueScale: GroupedValueScale,
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

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor, action_mask: Tensor | None, sizes: Sequence[int]
    ) -> NetworkOutput:
        """As `Network.step`, for rows sorted by network. Args: sizes: [M] numbers of rows."""
        self._split.set(sizes)
        return self._together.step(obs, core=core, action_mask=action_mask)

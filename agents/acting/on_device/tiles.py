"""Networks of one architecture over the slots of a turn, as batched products over tiles of rows, without a wait.

The rows of each network fill whole tiles, which is how a block-sparse product runs a mixture of experts (Gale et al.
2022, MegaBlocks, section 4). However many rows a network has, K rows of M networks never need more than K / B + M
tiles: so every shape is known before the numbers are.

Shape letters: M networks, K rows of all of them, B rows of a tile, G tiles, N = G B, I inputs, O outputs, H width.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from league.agents.acting.network_group import SHARED, Merged
from league.agents.nets.attention import Norm
from league.agents.nets.cores.clock import ClockCore
from league.agents.nets.kernels.dense import Dense
from league.agents.nets.network import Network, NetworkOutput
from league.agents.nets.popart import ValueScale, ValueStatistics, denormalise_values

MIN_TILE, TILES = 64, 32
"""Fewest rows of a tile, and tiles that the rows fill where there are many: more would copy weights more often."""


class Tiling:
    """The division of K rows among M networks."""

    def __init__(self, *, num_networks: int, num_rows: int) -> None:
        self._networks = num_networks
        self.size = max(MIN_TILE, -(-num_rows // (TILES * MIN_TILE)) * MIN_TILE)
        self.count = num_rows // self.size + num_networks
        self.network_of = torch.zeros(self.count, dtype=torch.int64)  # of each tile

    def divide(self, holders: Tensor) -> tuple[Tensor, Tensor]:
        """Take the network of each row, int64 [K].

        Returns:
          The row at each place of the tiles, int64 [N] (the first row at those left over), and the place of each row.
        """
        networks = torch.arange(self._networks, device=holders.device)
        slots = torch.arange(len(holders), device=holders.device)
        # One running sum over all networks: a GPU sums a column of many rows one by one.
        summed = (networks.unsqueeze(1) == holders).view(-1).cumsum(dim=0).view(self._networks, -1)
        counts = torch.diff(summed[:, -1], prepend=torch.zeros_like(networks[:1]))
        rank = summed[holders, slots] - (summed[:, -1] - counts)[holders] - 1
        ends = ((counts + self.size - 1) // self.size).cumsum(dim=0)  # tiles up to each network's last
        begins = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
        places = begins[holders] * self.size + rank
        tiles = torch.arange(self.count, device=holders.device)
        self.network_of = torch.searchsorted(ends, tiles, right=True).clamp(max=self._networks - 1)
        sources = torch.zeros(self.count * self.size, dtype=torch.int64, device=holders.device)
        return sources.scatter(0, places, slots), places

    def of_tiles(self, parameters: Sequence[Tensor]) -> Tensor:
        """The parameter of each tile's network, [G, ...]."""
        return torch.stack(list(parameters))[self.network_of]

    def cut(self, rows: Tensor) -> Tensor:
        """Rows [N, ..., I] as [G, rows of a tile, I]."""
        return rows.reshape(self.count, -1, rows.shape[-1])


class TiledDense(nn.Module):
    """The same layer of M networks."""

    def __init__(self, tiling: Tiling, layers: Sequence[Dense]) -> None:
        super().__init__()
        self._tiling = tiling
        self._weights, self._biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
        self._activation = layers[0].activation

    @property
    def weight(self) -> Tensor:
        """The first network's weight [O, I]; all have its dtype."""
        return self._weights[0]

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O], N rows in the first axis."""
        weights, biases = self._tiling.of_tiles(self._weights), self._tiling.of_tiles(self._biases)
        outputs = torch.baddbmm(biases.unsqueeze(1), self._tiling.cut(inputs), weights.transpose(1, 2))
        outputs = outputs.relu_() if self._activation == "relu" else outputs
        return outputs.view(*inputs.shape[:-1], -1)


class TiledLSTM(nn.Module):
    """The same LSTM of M networks, for one step."""

    def __init__(self, tiling: Tiling, layers: Sequence[nn.LSTM]) -> None:
        super().__init__()
        self._tiling = tiling
        self._weights_of: list[list[list[Tensor]]] = [[list(each) for each in layer.all_weights] for layer in layers]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Those of the first network; all have their dtype."""
        return self._weights_of[0]

    def forward(self, features: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [N, 1, H] and state [L, N, H] twice, of features [N, 1, I] and the state before."""
        inputs, hiddens, cells = self._tiling.cut(features), list[Tensor](), list[Tensor]()
        for layer, (hidden, cell) in enumerate(zip(*state, strict=True)):
            of_input, of_hidden, input_bias, hidden_bias = (
                self._tiling.of_tiles(parameter)
                for parameter in zip(*(weights[layer] for weights in self._weights_of), strict=True)
            )
            gates = torch.baddbmm((input_bias + hidden_bias).unsqueeze(1), inputs, of_input.transpose(1, 2))
            gates.baddbmm_(self._tiling.cut(hidden), of_hidden.transpose(1, 2))
            input_gate, forget_gate, candidate, output_gate = gates.flatten(0, 1).chunk(4, dim=1)
            cells.append(torch.addcmul(forget_gate.sigmoid() * cell, input_gate.sigmoid(), candidate.tanh()))
            hiddens.append(output_gate.sigmoid() * cells[-1].tanh())
            inputs = self._tiling.cut(hiddens[-1])
        return hiddens[-1].unsqueeze(1), (torch.stack(hiddens), torch.stack(cells))


class TiledNorm(nn.Module):
    """The same layer normalisation of M networks; like `Norm`, in float32 and back to the dtype of its input."""

    def __init__(self, tiling: Tiling, layers: Sequence[Norm]) -> None:
        super().__init__()
        self._tiling = tiling
        self._shape, self._eps = layers[0].normalized_shape, layers[0].eps
        self._weights, self._biases = [layer.weight for layer in layers], [layer.bias for layer in layers]

    def forward(self, features: Tensor) -> Tensor:
        """[N, ..., W] -> the same."""
        normal = nn.functional.layer_norm(features.float(), self._shape, eps=self._eps)
        weights, biases = self._tiling.of_tiles(self._weights), self._tiling.of_tiles(self._biases)
        scaled = torch.addcmul(biases.unsqueeze(1), self._tiling.cut(normal), weights.unsqueeze(1))
        return scaled.view(features.shape).to(features.dtype)


class TiledValueScale(nn.Module):
    """The same scale of values of M networks."""

    def __init__(self, tiling: Tiling, scales: Sequence[ValueScale]) -> None:
        super().__init__()
        self._tiling = tiling
        self._moments = [scale.moments for scale in scales]

    def forward(self, raw: Tensor) -> Tensor:
        """[N, ...] -> [N, ...]."""
        mean, second_moment = self._tiling.of_tiles(self._moments).unsqueeze(2).unbind(dim=1)  # [G, 1] each
        by_tile = raw.reshape(self._tiling.count, -1)
        statistics = ValueStatistics(mean=mean, second_moment=second_moment)
        return denormalise_values(by_tile, statistics).view(raw.shape)


TILED: Mapping[type[nn.Module], type[nn.Module]] = {
    Dense: TiledDense,
    nn.LSTM: TiledLSTM,
    Norm: TiledNorm,
    ValueScale: TiledValueScale,
}
"""Modules with parameters -> what replaces them; its arguments are the tiling and the module of each network."""


def can_tile(network: Network) -> bool:
    """True if every module of the network has a tiled form, or treats rows alike; others run row by row of no tile."""
    todo: list[nn.Module] = [network]
    while todo:
        module = todo.pop()
        if type(module) in TILED:
            continue
        if type(module) not in SHARED or type(module) in (ClockCore, Merged):
            return False
        todo.extend(module.children())
    return True


class TiledNetworks:
    """M networks of one architecture for which `can_tile` holds, over K rows.

    Args:
      networks: their parameters are read where they are, so that what they adopt later counts here too.
    """

    def __init__(self, networks: Sequence[Network], *, num_rows: int) -> None:
        self._tiling = Tiling(num_networks=len(networks), num_rows=num_rows)
        replaced: dict[int, object] = {}
        modules = [dict(network.named_modules()) for network in networks]
        for name, module in modules[0].items():
            if type(module) in TILED:
                replaced[id(module)] = TILED[type(module)](self._tiling, [each[name] for each in modules])
        self._together: Network = copy.deepcopy(networks[0], replaced)

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor, action_mask: Tensor | None, holders: Tensor
    ) -> NetworkOutput:
        """As `Network.step`, for K rows in any order. Args: holders: int64 [K], the network of each."""
        sources, places = self._tiling.divide(holders)
        output = self._together.step(
            {name: values[sources] for name, values in obs.items()},
            core=core[sources],
            action_mask=None if action_mask is None else action_mask[sources],
        )
        return NetworkOutput(output.logits[places], output.values[places], output.core[places])

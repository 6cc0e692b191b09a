"""Networks of its own for each group of seats, in one network: a row of a batch goes through that of its seat's group.

Each group's network sees the group's own fields and actions; its outputs are padded to one form for all groups. What a
group cannot do is illegal. The numbers of a box that it lacks are drawn from a constant normal of entropy 0, so that
they change no ratio, gradient or KL.

Shape letters: B rows, T steps, N rows of one step, ... either [B, T] or [N]; P dist_params, C floats of core state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from league.agents.nets.blocks import SideInputs
from league.agents.nets.heads import CategoricalHead, GaussianHead, Head, HeadsBlock
from league.agents.nets.kernels.distributions import ILLEGAL_LOGIT
from league.agents.nets.separate_value import TwinHeads
from league.agents.nets.sub_actions import MultiCategoricalHead
from league.envs.padding import box_entries, corner, mask_entries
from league.envs.protocol import SEAT_GROUP, ArraySpec, EnvSpec, SeatGroup

NO_ENTROPY = -0.5 * math.log(2.0 * math.pi * math.e)
"""Log standard deviation of a normal whose entropy is 0."""

VALUE = -1
"""Index of the value in the features between the two blocks."""


class GroupOutput(Protocol):
    """The outputs of a group's network, as `NetworkOutput`."""

    @property
    def logits(self) -> Tensor: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def core(self) -> Tensor: ...


class GroupNetwork(Protocol):
    """A whole network of one group, as `Network`."""

    core_size: int

    def forward(
        self,
        obs: Mapping[str, Tensor],
        *,
        resets: Tensor | None = None,
        core: Tensor | None = None,
        action_mask: Tensor | None = None,
    ) -> GroupOutput: ...

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor | None = None, action_mask: Tensor | None = None
    ) -> GroupOutput: ...


class SeatGroupNetworks(nn.Module):
    """The first block: every row through the network of its group; features are the dist_params and the value."""

    def __init__(self, spec: EnvSpec, networks: Sequence[GroupNetwork]) -> None:
        super().__init__()
        modules = zip(spec.seat_groups, networks, strict=True)
        # The prefix keeps names of groups apart from the attributes of a ModuleDict.
        self.networks = nn.ModuleDict({f"group_{group.name}": cast(nn.Module, module) for group, module in modules})
        self.groups = tuple(_Form(spec, group) for group in spec.seat_groups)
        self.core_size = max(network.core_size for network in networks)

    def forward(
        self, *, obs: Mapping[str, Tensor], resets: Tensor | None, core: Tensor, action_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Features [..., P + 1] and core state [B, C] of fields [..., *shape]: [B, T] with memory, else [N]."""
        marks = obs[SEAT_GROUP]
        group_of = (marks[:, 0] if self.core_size else marks).to(torch.uint8).argmax(-1)
        side = SideInputs(obs, resets, core, action_mask)
        if torch.compiler.is_exporting():
            return self._all_groups(group_of, side)
        features, cores, order = [], [], []
        for index in range(len(self.groups)):
            rows = (group_of == index).nonzero().squeeze(-1)
            if not len(rows):
                continue
            output, own_core = self._group(index, rows, side)
            features.append(output)
            cores += [own_core] if self.core_size else []
            order.append(rows)
        if len(order) == 1:
            return features[0], cores[0] if cores else core
        back = torch.cat(order).argsort()
        return torch.cat(features)[back], torch.cat(cores)[back] if cores else core

    def _all_groups(self, group_of: Tensor, side: SideInputs) -> tuple[Tensor, Tensor]:
        """The same in a graph, which has no branches: every row through every network, and then its own chosen."""
        rows = torch.arange(group_of.shape[0], device=group_of.device)
        outputs, cores = zip(*(self._group(index, rows, side) for index in range(len(self.groups))), strict=True)
        features = torch.stack(outputs)[group_of, rows]
        return features, torch.stack(cores)[group_of, rows] if self.core_size else side.core

    def _group(self, index: int, rows: Tensor, side: SideInputs) -> tuple[Tensor, Tensor]:
        """Features [rows, ..., P + 1] and padded core state [rows, C] of the network of one group."""
        form = self.groups[index]
        network = cast(GroupNetwork, list(self.networks.values())[index])
        own, mask = form.observations(side.obs, rows), form.mask(side.action_mask, rows)
        if self.core_size:
            start = side.core[rows, : network.core_size].contiguous()
            resets = None if side.resets is None else side.resets[rows]
            output = network.forward(own, resets=resets, core=start, action_mask=mask)
            core = nn.functional.pad(output.core, (0, self.core_size - network.core_size))
        else:
            output = network.step(own, action_mask=mask)
            core = output.core
        return torch.cat([form.padded(output.logits), output.values.unsqueeze(-1)], dim=-1), core


class SeatGroupHeads(nn.Module):
    """The last block: dist_params and values apart again, and the distribution over the padded actions.

    Fields:
      members: last blocks of the groups' networks, which compute their values.
    """

    def __init__(self, head: Head, members: Sequence[HeadsBlock | TwinHeads]) -> None:
        super().__init__()
        # In tuples, since all of their parameters are registered elsewhere or not trained.
        self._head = (head,)
        self._members = tuple(members)

    @property
    def head(self) -> Head:
        """The distribution over the padded actions."""
        return self._head[0]

    @property
    def members(self) -> tuple[HeadsBlock | TwinHeads, ...]:
        """Last blocks of the groups' networks."""
        return self._members

    def forward(self, features: Tensor, *, action_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """dist_params float32 [..., P] and values float32 [...] of features [..., P + 1]."""
        del action_mask
        return features[..., :VALUE], features[..., VALUE]


def own_spec(spec: EnvSpec, group: SeatGroup) -> EnvSpec:
    """The game as the seats of one group see it."""
    return replace(
        spec,
        observations=group.observations,
        actions=group.actions,
        has_mask=spec.has_mask and group.actions.kind != "box",
        value_fields=tuple(name for name in spec.value_fields if name in group.observations),
        seat_groups=(),
    )


def check_group_head(head: Head) -> None:
    """Refuse a head whose outputs cannot be padded.

    Raises:
      ValueError: it holds layers of its own, or is not one of those known here.
    """
    known = isinstance(head, CategoricalHead | MultiCategoricalHead | GaussianHead)
    if not known or (isinstance(head, nn.Module) and any(True for _ in head.children())):
        raise ValueError(
            f"head: a {type(head).__name__} cannot be padded to the actions of several seat groups; use head: auto"
        )


class _Form:
    """The place of a group's fields and actions in the padded form."""

    def __init__(self, spec: EnvSpec, group: SeatGroup) -> None:
        self._fields: dict[str, ArraySpec] = dict(group.observations)
        padded, own = spec.actions, group.actions
        if padded.kind == "box":
            entries, size = box_entries(own, padded), int(np.prod(padded.shape, dtype=np.int64))
            fill = np.concatenate([np.zeros(size), np.full(size, NO_ENTROPY)])
            self._entries = torch.from_numpy(np.concatenate([entries, size + entries]))
        else:
            fill = np.full(padded.num_actions, ILLEGAL_LOGIT)
            self._entries = torch.from_numpy(mask_entries(own, padded))
        self._fill = torch.from_numpy(fill.astype(np.float32))
        self._is_whole = len(self._entries) == len(fill)

    def observations(self, obs: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """The group's own fields, name -> [rows, ...]; those that are missing stay so."""
        own = {}
        for name, array in self._fields.items():
            if name in obs:
                # Whole rows at once: of pictures, 5 to 30 times as fast as [rows].
                field = obs[name].index_select(0, rows)
                leading = (slice(None),) * (field.ndim - len(array.shape))
                own[name] = field[(*leading, *corner(array.shape))]
        return own

    def mask(self, action_mask: Tensor | None, rows: Tensor) -> Tensor | None:
        """The group's own entries of the mask."""
        if action_mask is None:
            return None
        return action_mask[rows][..., self._entries.to(action_mask.device)]

    def padded(self, dist_params: Tensor) -> Tensor:
        """dist_params [..., P] with the padding of those of the group."""
        if self._is_whole:
            return dist_params
        fill = self._fill.to(dist_params).expand(*dist_params.shape[:-1], -1)
        return fill.index_copy(-1, self._entries.to(dist_params.device), dist_params)

"""The autoregressive head: chooses sub-actions one by one, each given the choices before it, with pointers.

A context vector passes from one sub-action to the next; every choice is added to it. A sub-action that points at
entities compares a query with their keys, which the encoder carries past the core. Absent entities are never chosen.

Shape letters: ... leading axes, H sub-actions, n choices of one sub-action, W width of the context, K width of a key,
E entities of one set, A entries of the action mask. dist_params are float32 [..., W + sum of (E * K + E) + A], laid
out as [context | keys and flags of each set | mask].

Source: Vinyals et al. 2019, Grandmaster level in StarCraft II, supplementary data, detailed architecture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import compute_dtype, orthogonal_dense
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import POLICY_GAIN, require_kind
from league.agents.nets.kernels.dense import Dense
from league.agents.nets.kernels.distributions import mask_logits, mix_uniform
from league.agents.nets.sub_actions import Choose, SubAction, SubActionsHead, sub_action_of
from league.envs.protocol import ActionSpec, SubActionMask


@dataclass(frozen=True)
class Targets:
    """The entities that a pointer chooses from: keys float32 [..., E, K], and bool [..., E], True if present."""

    keys: Tensor
    present: Tensor


class NumberedChoice(nn.Module):
    """A sub-action that chooses one of n numbers; the last one has no embedding, because nothing follows it."""

    def __init__(self, num_choices: int, size: int, generator: torch.Generator, *, is_last: bool) -> None:
        super().__init__()
        self.hidden = orthogonal_dense(size, size, gain=2.0**0.5, generator=generator, relu=True)
        self.output = orthogonal_dense(size, num_choices, gain=POLICY_GAIN, generator=generator)
        self.embedding = None if is_last else orthogonal_dense(num_choices, size, gain=1.0, generator=generator)

    def logits(self, context: Tensor, targets: Targets | None) -> Tensor:
        """Logits float32 [..., n] of the context [..., W]."""
        assert targets is None, "numbers have no keys"
        return _apply(self.output, _apply(self.hidden, context))

    def embed(self, action: Tensor, targets: Targets | None) -> Tensor:
        """Embeds the choice int64 [...] as a term float32 [..., W] of the context."""
        assert targets is None, "numbers have no keys"
        assert self.embedding is not None, "nothing follows the last sub-action"
        return nn.functional.embedding(action, self.embedding.weight.t()).float() + self.embedding.bias.float()


class PointerChoice(nn.Module):
    """A sub-action that chooses one of E entities by their keys."""

    def __init__(self, size: int, key_size: int, generator: torch.Generator, *, is_last: bool) -> None:
        super().__init__()
        self.hidden = orthogonal_dense(size, size, gain=2.0**0.5, generator=generator, relu=True)
        self.query = orthogonal_dense(size, key_size, gain=POLICY_GAIN, generator=generator)
        self.embedding = None if is_last else orthogonal_dense(key_size, size, gain=1.0, generator=generator)

    def logits(self, context: Tensor, targets: Targets | None) -> Tensor:
        """Logits float32 [..., E] of the context [..., W]."""
        assert targets is not None, "a pointer needs keys"
        query = _apply(self.query, _apply(self.hidden, context))
        scores = torch.matmul(targets.keys, query.unsqueeze(-1)).squeeze(-1) / math.sqrt(query.shape[-1])
        return mask_logits(scores, targets.present)

    def embed(self, action: Tensor, targets: Targets | None) -> Tensor:
        """Embeds the choice int64 [...] as a term float32 [..., W] of the context."""
        assert targets is not None, "a pointer needs keys"
        assert self.embedding is not None, "nothing follows the last sub-action"
        index = action[..., None, None].expand(*action.shape, 1, targets.keys.shape[-1])
        return _apply(self.embedding, targets.keys.gather(-2, index).squeeze(-2))


class AutoregressiveHead(SubActionsHead):
    """Sub-actions in sequence, over the numbers and the entities that the game's action spec names."""

    output_gain = 2.0**0.5

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        require_kind(actions, "multi_categorical", head="autoregressive")
        self.pointers = tuple(dict.fromkeys(name for name in actions.points_at if name))
        self.points_at = actions.points_at
        self.masks = actions.sub_action_masks
        self.num_noise = len(actions.nvec)
        self.num_outputs = config.head_size
        self.uniform_mix = config.uniform_mix
        self.key_size = config.pointer_size
        self.counts = tuple(actions.nvec[actions.points_at.index(name)] for name in self.pointers)
        self.num_passthrough = sum(self.counts) * (self.key_size + 1)
        self.num_mask = actions.num_actions
        self.choices = nn.ModuleList()
        for sub_action, (num_choices, name) in enumerate(zip(actions.nvec, actions.points_at, strict=True)):
            is_last = sub_action + 1 == self.num_noise
            self.choices.append(
                PointerChoice(config.head_size, config.pointer_size, generator, is_last=is_last)
                if name
                else NumberedChoice(num_choices, config.head_size, generator, is_last=is_last)
            )

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Context, keys and flags unchanged, then the mask as zeros and ones, float32 [..., P]."""
        outputs = outputs.float()
        if action_mask is None:
            mask = outputs.new_ones(*outputs.shape[:-1], self.num_mask)
        else:
            mask = action_mask.to(outputs.dtype)
        return torch.cat([outputs, mask], dim=-1)

    def sub_actions(self, dist_params: Tensor, choose: Choose) -> list[SubAction]:
        """[H] as in `SubActionsHead`, each given the choices before it."""
        context, passed_through, mask = torch.split(
            dist_params, [self.num_outputs, self.num_passthrough, self.num_mask], dim=-1
        )
        sets = self._targets(passed_through)
        sub_actions: list[SubAction] = []
        for number, (module, name) in enumerate(zip(self.choices, self.points_at, strict=True)):
            choice = cast(NumberedChoice | PointerChoice, module)
            targets = sets[name] if name else None
            legal = _legal(mask, self.masks[number], sub_actions)
            logits = mix_uniform(mask_logits(choice.logits(context, targets), legal), self.uniform_mix)
            sub_action = sub_action_of(number, logits, choose)
            sub_actions.append(sub_action)
            if number + 1 < self.num_noise:
                added = choice.embed(sub_action.action, targets)
                context = context + torch.where(sub_action.used.unsqueeze(-1), added, 0.0)
        return sub_actions

    def _targets(self, passed_through: Tensor) -> dict[str, Targets]:
        sets, start = dict[str, Targets](), 0
        for name, count in zip(self.pointers, self.counts, strict=True):
            end = start + count * self.key_size
            keys = passed_through[..., start:end].reshape(*passed_through.shape[:-1], count, self.key_size)
            sets[name] = Targets(keys, passed_through[..., end : end + count] > 0.5)
            start = end + count
        return sets


def _legal(mask: Tensor, place: SubActionMask, earlier: Sequence[SubAction]) -> Tensor:
    """Bool [..., n], the legal choices of a sub-action in the mask [..., A], given the choices before it."""
    choices = mask[..., place.start : place.start + place.rows * place.size] > 0.5
    if place.given < 0:
        return choices
    row = earlier[place.given].action[..., None, None]
    table = choices.reshape(*choices.shape[:-1], place.rows, place.size)
    return torch.gather(table, -2, row.expand(*row.shape[:-1], place.size)).squeeze(-2)


def _apply(layer: Dense, features: Tensor) -> Tensor:
    """Apply a layer in its compute dtype, with float32 in and out, as dist_params and log-probabilities are."""
    output: Tensor = layer(features.to(compute_dtype(layer.weight)))
    return output.float()

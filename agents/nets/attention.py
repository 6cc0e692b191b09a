"""Transformer layers: normalisation, attention and feed-forward, with orthogonal weights.

Shape letters: N rows, Q query places, S places attended to, W width, H attention heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import compute_dtype, orthogonal_dense
from league.agents.nets.kernels import feed_forward, sets
from league.agents.nets.kernels.dense import dense

HIDDEN_FACTOR = 4
"""Hidden width of a feed-forward layer. Source: Vaswani et al. 2017, Attention is all you need, 3.3."""

EXCLUDED = -1e9
"""Score of a masked place: its weight is exactly 0, and a row with nothing else makes no NaN."""


class Norm(nn.LayerNorm):
    """Layer normalisation that keeps the dtype of its input; the kernel always computes in float32."""

    def forward(self, features: Tensor) -> Tensor:
        """[..., W] -> [..., W]."""
        weight, bias = self.weight.to(features.dtype), self.bias.to(features.dtype)
        if not torch.is_autocast_enabled(features.device.type):
            return nn.functional.layer_norm(features, self.normalized_shape, weight, bias, self.eps)
        with torch.autocast(features.device.type, enabled=False):  # autocast would double the bytes of every result
            return nn.functional.layer_norm(features, self.normalized_shape, weight, bias, self.eps)


class Attention(nn.Module):
    """Multi-head attention.

    Raises:
      ValueError: the heads do not divide the width.
    """

    def __init__(self, size: int, num_heads: int, generator: torch.Generator) -> None:
        super().__init__()
        if size % num_heads:
            raise ValueError(f"{num_heads} attention heads do not divide a width of {size}; change attention_heads")
        self.num_heads = num_heads
        self.query = orthogonal_dense(size, size, gain=1.0, generator=generator)
        self.key_value = orthogonal_dense(size, 2 * size, gain=1.0, generator=generator)
        self.output = orthogonal_dense(size, size, gain=1.0, generator=generator)
        for half in self.key_value.weight.detach().chunk(2):
            nn.init.orthogonal_(half, gain=1.0, generator=generator)

    def forward(self, asking: Tensor, asked: Tensor, scores: Tensor) -> Tensor:
        """Attend from each query place to the others.

        Args:
          asking: [N, Q, W]; asked: [N, S, W], both of the compute dtype.
          scores: floating, broadcastable to [N, H, Q, S], added to the scores before the softmax.
        Returns:
          [N, Q, W].
        """
        query = self._per_head(self.query(asking))
        key, value = (self._per_head(half) for half in self.key_value(asked).chunk(2, dim=-1))
        gathered = nn.functional.scaled_dot_product_attention(query, key, value, scores.to(query.dtype))
        output: Tensor = self.output(gathered.transpose(1, 2).reshape(asking.shape))
        return output

    def within(self, features: Tensor, present: Tensor) -> Tensor:
        """Attend from each place [N, S, W] to those that are present, bool [N, S].

        A row of which no place is present has any output, but no NaN.
        """
        places, width = features.shape[1:]
        if not sets.prefers_kernel(features, places=places, head_width=width // self.num_heads):
            return self.forward(features, features, torch.where(present, 0.0, EXCLUDED)[:, None, None])
        weight = torch.cat([self.query.weight, self.key_value.weight])
        bias = torch.cat([self.query.bias, self.key_value.bias])
        gathered, _ = sets.attend(dense(features, weight, bias), present.contiguous(), self.num_heads)
        output: Tensor = self.output(gathered)
        return output

    def _per_head(self, features: Tensor) -> Tensor:
        """[N, S, W] -> [N, H, S, W / H]."""
        return features.view(*features.shape[:2], self.num_heads, -1).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers with ReLU between."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = orthogonal_dense(size, HIDDEN_FACTOR * size, gain=2.0**0.5, generator=generator, relu=True)
        self.second = orthogonal_dense(HIDDEN_FACTOR * size, size, gain=1.0, generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """[..., W] -> [..., W]."""
        output: Tensor
        if feed_forward.prefers_kernel(features, num_hidden=HIDDEN_FACTOR * features.shape[-1]):
            output = feed_forward.feed_forward(
                features, self.first.weight, self.first.bias, self.second.weight, self.second.bias
            )
        else:
            output = self.second(self.first(features))
        return output


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each on normalised features and added to them.

    Source: Xiong et al. 2020, On layer normalization in the transformer architecture (the pre-norm form).
    """

    def __init__(self, size: int, num_heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.attention_norm = Norm(size)
        self.attention = Attention(size, num_heads, generator)
        self.feed_forward_norm = Norm(size)
        self.feed_forward = FeedForward(size, generator)

    def forward(self, features: Tensor, scores: Tensor, *, memory: Tensor | None = None) -> Tensor:
        """Apply the layer.

        Args:
          features: [N, Q, W] of the compute dtype.
          scores: as in `Attention.forward`, for the S = M + Q places of memory and features together.
          memory: [N, M, W] places that are attended to but have no queries; None for none.
        Returns:
          [N, Q, W].
        """
        asking = self.attention_norm(features)
        asked = asking if memory is None else torch.cat([self.attention_norm(memory), asking], dim=1)
        return self._add(features, self.attention(asking, asked, scores))

    def within(self, features: Tensor, present: Tensor) -> Tensor:
        """The layer [N, S, W] -> [N, S, W] over sets, whose places attend to those present, bool [N, S]."""
        return self._add(features, self.attention.within(self.attention_norm(features), present))

    def _add(self, features: Tensor, attended: Tensor) -> Tensor:
        features = features + attended
        output: Tensor = features + self.feed_forward(self.feed_forward_norm(features))
        return output

    @property
    def dtype(self) -> torch.dtype:
        """The compute dtype of the layer."""
        return compute_dtype(self.attention.query.weight)

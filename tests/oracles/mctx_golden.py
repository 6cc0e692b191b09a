"""Makes `tests/golden/gumbel.json` with mctx (`pip install mctx==0.0.71`), then `python -m tests.oracles.mctx_golden`.

The game has no end: a position is a number, move a leads from s to (A s + a + 1) mod STATES, two seats take turns.
Shape letters: K roots, A actions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STATES, ACTIONS = 4_093, 5
ROOTS = [3, 77, 1_200, 4_000]
FORBIDDEN = [[], [0], [1, 4], []]
"""Moves at the roots that are illegal."""
FILE = Path(__file__).resolve().parents[1] / "golden" / "gumbel.json"


def logit(state: Any, action: Any) -> Any:
    """Of a move at a position; states and actions may be arrays, of numpy or of jax."""
    return ((state * 7_919 + action * 1_297 + 13) % 1_009) / 250.0 - 2.0


def value(state: Any) -> Any:
    """Of a position for the seat to move."""
    return ((state * 6_007 + 5) % 997) / 498.5 - 1.0


def after(state: Any, action: Any) -> Any:
    """The next position."""
    return (state * ACTIONS + action + 1) % STATES


def main() -> int:
    """Write the file."""
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]
    import mctx  # type: ignore[import-not-found]

    actions = jnp.arange(ACTIONS)

    def judged(state: Any) -> Any:
        return logit(state[:, None], actions[None]).astype(jnp.float32), value(state).astype(jnp.float32)

    def recurrent(_: Any, __: Any, action: Any, state: Any) -> Any:
        state = after(state, action)
        logits, values = judged(state)
        reward, discount = jnp.zeros_like(values), -jnp.ones_like(values)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=values), state

    state = jnp.array(ROOTS)
    logits, values = judged(state)
    illegal = jnp.array([[action in moves for action in range(ACTIONS)] for moves in FORBIDDEN])
    cases = []
    for seed, num_simulations in ((0, 4), (1, 16), (2, 32), (3, 50)):
        output = mctx.gumbel_muzero_policy(
            params=(),
            rng_key=jax.random.PRNGKey(seed),
            root=mctx.RootFnOutput(prior_logits=logits, value=values, embedding=state),
            recurrent_fn=recurrent,
            num_simulations=num_simulations,
            invalid_actions=illegal,
            max_num_considered_actions=16,
        )
        tree = output.search_tree
        cases.append(
            {
                "num_simulations": num_simulations,
                "noise": tree.extra_data.root_gumbel.tolist(),
                "visits": tree.summary().visit_counts.astype(int).tolist(),
                "policy": output.action_weights.tolist(),
                "action": output.action.tolist(),
            }
        )
    FILE.write_text(json.dumps({"mctx": mctx.__version__, "jax": jax.__version__, "cases": cases}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

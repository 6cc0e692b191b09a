"""QAC, an actor-critic by action values, as a plug-in of one file: a head of both, and an objective over it."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import torch

from league.agents.learner.algorithms.action_values import ActionValueObjective
from league.agents.learner.algorithms.objective import ForwardPasses, Loss
from league.agents.learner.algorithms.q_config import QLearningConfig
from league.agents.learner.build import build_learner
from league.agents.learner.config import LearnerConfig
from league.agents.losses.q_learning import bootstrapped
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import CategoricalHead
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import adopt
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

STATES, ACTIONS, GAMMA = 3, 2, 0.5
ROUND = EnvSpec(
    "round",
    1,
    {"at": ArraySpec((STATES,), "float32")},
    ActionSpec("categorical", num_actions=ACTIONS),
    (0,),
    has_mask=False,
)
REWARDS = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.8]])
"""Of each action in each state of a round trip that goes on whatever is done."""


class PolicyAndValues(CategoricalHead):
    """The logits of a policy, and behind them a value for each action."""

    def __init__(self, actions, config, generator) -> None:  # type: ignore[no-untyped-def]
        super().__init__(actions, config, generator)
        self.num_outputs = 2 * actions.num_actions

    def dist_params_of(self, outputs: torch.Tensor, action_mask: torch.Tensor | None) -> torch.Tensor:
        """Both as they are."""
        return outputs.float()


class QAC(ActionValueObjective):
    """The policy's score times Q(s, a), and Q by TD(0) of the action that follows.

    Source: Sutton et al. 2000, Policy gradient methods, theorem 1.
    """

    def __init__(self, config, head) -> None:  # type: ignore[no-untyped-def]
        super().__init__(config, QLearningConfig())

    @property
    def passes(self) -> ForwardPasses:
        """None: the critic is its own target."""
        return ForwardPasses()

    def loss(self, output, batch, loss_weights) -> Loss:  # type: ignore[no-untyped-def]
        """As in the protocol; what was done at the row's end is not known, so that its last decision counts not."""
        logits, values = output.logits.chunk(2, dim=-1)
        index = batch.actions.unsqueeze(-1)
        chosen = values[:, :-1].gather(-1, index).squeeze(-1)
        following = torch.cat([chosen[:, 1:], chosen[:, -1:]], 1).detach()
        errors = bootstrapped(self.steps_of(batch), following) - chosen
        scores = torch.log_softmax(logits[:, :-1], -1).gather(-1, index).squeeze(-1)
        learn = batch.learn.clone()
        learn[:, -1] = False
        return self.loss_from(
            batch, learn, critic=0.5 * errors.square(), policy=-0.1 * scores * chosen.detach(), errors=errors
        )


def test_the_policy_takes_the_better_action_and_the_critic_its_value() -> None:
    layout = NetworkConfig(hidden=(), head=f"{__name__}:PolicyAndValues")
    config = LearnerConfig(
        algorithm=f"{__name__}:QAC",
        unroll_length=6,
        batch_rows=64,
        gamma=GAMMA,
        learning_rate=0.03,
        precision="float32",
    )
    network, rng = build_network(ROUND, layout, seed=0), np.random.default_rng(0)
    learner = build_learner(ROUND, layout, config, seed=0, dtype=torch.float32)
    with closing(learner):
        for update in range(400):
            adopt(network, learner.publish())
            probs = torch.softmax(network.step({"at": torch.eye(STATES)}).logits[:, :ACTIONS], -1).detach().numpy()
            rows = UnrollSpec(ROUND, 6).allocate(64)
            states = (rng.integers(STATES, size=(64, 1)) + np.arange(7)) % STATES
            rows.obs["at"][:] = np.eye(STATES)[states]
            rows.actions[:] = rng.random((64, 6)) < probs[states[:, :6], 1]
            rows.rewards[:] = REWARDS[states[:, :6], rows.actions]
            rows.discounts[:], rows.valid[:] = 1.0, True
            rows.versions[:] = learner.version
            learner.update(rows, budget_fraction=update / 400)
    dist_params = network.step({"at": torch.eye(STATES)}).logits.detach().numpy()
    assert dist_params[:, :ACTIONS].argmax(1).tolist() == REWARDS.argmax(1).tolist()
    best = REWARDS.max(1)
    following = [best[(s + 1) % 3] + GAMMA * best[(s + 2) % 3] + GAMMA**2 * best[s] for s in range(3)]
    exact = REWARDS + GAMMA * np.array(following)[:, None] / (1 - GAMMA**3)
    np.testing.assert_allclose(dist_params[:, ACTIONS:].max(1), exact.max(1), atol=0.1)

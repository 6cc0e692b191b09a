"""NashConv of phantom games by rows of stones: equal to a walk over every history, and to OpenSpiel."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pyspiel
import pytest
from numpy.typing import NDArray
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability as openspiel_exploitability

from league.envs.games.phantom import PhantomBoard
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.envs.search.known_tree import known_tree
from league.policies.exact.behaviours import Fields, PolicyFunction
from league.policies.exact.exploitability import nash_conv, pairwise_values
from league.policies.exact.phantom_game import PhantomGame
from league.policies.exact.sequence_form import SequenceForm
from league.policies.exact.small_game import NoExactValue, SmallGame, small_game

BOARDS = {
    "hex": EnvConfig("dark_hex", {"rows": 2, "cols": 2}),
    "abrupt hex": EnvConfig("dark_hex", {"rows": 2, "cols": 2, "abrupt": True}),
    "flat hex": EnvConfig("dark_hex", {"rows": 1, "cols": 4}),
    "row": EnvConfig("phantom_tic_tac_toe", {"rows": 1, "cols": 3, "in_row": 2}),  # can be drawn
    "abrupt row": EnvConfig("phantom_tic_tac_toe", {"rows": 1, "cols": 4, "in_row": 3, "abrupt": True}),
    "square": EnvConfig("phantom_tic_tac_toe", {"rows": 2, "cols": 2, "abrupt": True}),
}


def drawn(seed: int) -> PolicyFunction:
    """A fixed policy that depends on every entry of what it sees."""

    def policy(fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.floating]:
        seen = fields["information_state"].astype(np.float64)
        weights = np.random.default_rng(seed).normal(size=(seen.shape[1], legal.shape[1]))
        scores = np.where(legal, np.exp(2.0 * np.sin(seen @ weights * 3.0)), 0.0)
        return scores / scores.sum(axis=1, keepdims=True)

    return policy


class Remembering:
    """A `RecurrentFunction` whose memory is a sum over what it saw."""

    core_size = 3

    def __call__(self, fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.floating]:
        return self.after(fields, legal, np.zeros((len(legal), 3), np.float32))[0]

    def after(
        self, fields: Fields, legal: NDArray[np.bool_], core: NDArray[np.float32]
    ) -> tuple[NDArray[np.floating], NDArray[np.float32]]:
        seen = fields["information_state"].astype(np.float64)
        later = (0.5 * core + seen @ np.random.default_rng(5).normal(size=(seen.shape[1], 3))).astype(np.float32)
        scores = np.where(legal, np.exp(np.sin(later @ np.random.default_rng(6).normal(size=(3, legal.shape[1])))), 0.0)
        return scores / scores.sum(axis=1, keepdims=True), later


def walked(config: EnvConfig) -> SmallGame:
    """The same game, every history visited by copies."""
    with closing(make(config, num_envs=1)) as env:
        tree = known_tree(env, limit_s=60.0).tree
    return SmallGame(tree.info_states, SequenceForm(tree.info_states, tree.endings))


@pytest.mark.parametrize("config", BOARDS.values(), ids=BOARDS)
def test_values_are_those_of_every_history(config: EnvConfig) -> None:
    slow, fast = walked(config), small_game(config)
    assert isinstance(fast, PhantomGame)
    members = [(0.3, drawn(1)), (0.7, drawn(2))]
    for policy in (drawn(0), members, Remembering()):
        assert fast.nash_conv(policy) == pytest.approx(slow.nash_conv(policy), abs=1e-12)
    policies = [drawn(seed) for seed in range(3)]
    assert np.allclose(
        pairwise_values(config, policies), slow.form.pairwise_values(slow.plans(policies)), rtol=0, atol=1e-12
    )
    assert fast.num_states == len(slow.states.seat)


@pytest.mark.parametrize("name", ["hex", "abrupt row"])
def test_a_best_reply_earns_what_it_promises(name: str) -> None:
    game = small_game(BOARDS[name])
    plan, other = game.plans([drawn(3), drawn(4)])
    assert game.form.nash_conv(plan) == pytest.approx(nash_conv(BOARDS[name], drawn(3)), abs=1e-12)
    for seat in (0, 1):
        value, reply = game.form.best_reply(plan, seat)
        assert game.form.against_each(reply, seat, np.stack([plan]))[0] == pytest.approx(value, abs=1e-12)
        assert game.form.against_each(reply, seat, np.stack([other]))[0] <= game.form.best_reply(other, seat)[0] + 1e-12


class _Ours(openspiel_policy.Policy):  # type: ignore[misc]  # OpenSpiel is not typed
    """A `PolicyFunction` of our game in OpenSpiel's."""

    def __init__(self, game: Any, rules: Any, policy: PolicyFunction) -> None:
        super().__init__(game, [0, 1])
        self._rules, self._policy = rules, policy

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        seat = state.current_player() if player_id is None else player_id
        lines = state.information_state_string(seat).split("\n")
        board, tries = "".join(lines[:2]), [int(one.split(",")[1]) for one in lines[-1].split()]
        placed = np.array([board[cell] == "xo"[seat] for cell in tries], np.bool_)
        fields, legal = self._rules.shown(seat, np.array([tries], np.int64).reshape(1, -1), placed)
        probs = self._policy(fields, legal)[0]
        return {action: float(probs[action]) for action in state.legal_actions(seat)}


def test_abrupt_dark_hex_has_the_nash_conv_of_openspiel() -> None:
    """The classical game has not: what OpenSpiel calls its information states counts the other seat's tries too."""
    game = pyspiel.load_game("dark_hex(board_size=2,gameversion=adh)")
    with closing(make(BOARDS["abrupt hex"], num_envs=1)) as env:
        assert isinstance(env, PhantomBoard)
        theirs = openspiel_exploitability.nash_conv(game, _Ours(game, env.rules, drawn(7)))
    assert nash_conv(BOARDS["abrupt hex"], drawn(7)) == pytest.approx(theirs, abs=1e-9)


def test_policies_that_are_none_and_boards_that_are_too_large_are_refused() -> None:
    with pytest.raises(ValueError, match="probabilities of legal actions"):
        nash_conv(BOARDS["hex"], lambda fields, legal: np.ones(legal.shape))
    with pytest.raises(NoExactValue, match="10 cells, at most 9"):
        nash_conv(EnvConfig("dark_hex", {"rows": 2, "cols": 5}), drawn(0))
    with pytest.raises(NoExactValue, match=r"takes about 0 s, more than the 0 s given"):
        nash_conv(BOARDS["hex"], drawn(0), limit_s=0.0)


def test_progress_rises_to_the_whole() -> None:
    shares: list[float] = []
    small_game(BOARDS["abrupt hex"]).nash_conv(drawn(0), shares.append)  # type: ignore[call-arg]
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 10

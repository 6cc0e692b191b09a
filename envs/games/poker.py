"""Two-seat poker on tables: the rules are compiled once to a betting tree, in which N games step by look-up.

All cards are dealt when a game starts, public ones too; the betting decides which of them a seat sees. A game is
two numbers: its betting situation and its deal.

Shape letters: N games, H betting situations in which a seat must act, E endings, D equally likely deals, A actions,
F entries of the information state, I information states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import DecisionTree, Endings, InformationStates
from league.envs.games.alternating import AlternatingGame
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, Turn
from league.envs.sampling import pack_stream, split_stream, unpack_stream

FIELD = "information_state"
ILLEGAL = 1 << 40  # in `BettingTree.child`: no such situation
DEALS_AT_ONCE = 1 << 14  # drawn at a time: one call serves many restarts

Deal = tuple[int, ...]
"""The cards of a game: the first seat's, the second seat's, then the public ones."""


class Betting(Protocol):
    """A betting situation: the actions of both seats so far, without the cards."""

    @property
    def seat(self) -> int | None:
        """The seat that must act, None if the game is over."""
        ...

    @property
    def legal(self) -> tuple[int, ...]:
        """Legal actions of that seat."""
        ...

    def after(self, action: int) -> Betting:
        """The situation after a legal action."""
        ...

    def observed(self, deal: Deal) -> tuple[int, ...]:
        """The entries of the information state that are 1 for the seat that must act."""
        ...

    def payoff(self, deal: Deal) -> float:
        """Chips that the first seat has won when the game is over; the second seat has lost them."""
        ...


@dataclass(frozen=True)
class BettingTree:
    """A poker game as tables. Games start in the first situation; each situation has a higher index than its parent.

    Fields:
      seat: int64 [H], the seat that must act.
      legal: bool [H, A].
      child: int64 [H, A], the situation after an action; -1 - e for ending e, `ILLEGAL` for an illegal action.
      payoffs: float32 [E, D], chips that the first seat wins.
      observed: bool [H, D, F], the information state of the seat that must act.
      info_state: int64 [H, D], its number in [0, I); equal if the seat sees the same.
      max_turns: decisions in the longest game.
    """

    seat: NDArray[np.int64]
    legal: NDArray[np.bool_]
    child: NDArray[np.int64]
    payoffs: NDArray[np.float32]
    observed: NDArray[np.bool_]
    info_state: NDArray[np.int64]
    max_turns: int

    def info_states(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Observations bool [I, F] and legal actions bool [I, A] of every information state."""
        first = np.unique(self.info_state, return_index=True)[1]
        situation = first // self.info_state.shape[1]
        return self.observed.reshape(-1, self.observed.shape[2])[first], self.legal[situation]

    def decision_tree(self) -> DecisionTree:
        """The same game as information states, numbered by their first situation, and endings [E * D]."""
        num_deals, num_endings = self.info_state.shape[1], len(self.payoffs)
        last = np.full((len(self.seat), 2, 2), -1)  # [H, seat, (situation, action)], each seat's decision before
        ends = np.full((num_endings, 2, 2), -1)
        for number, mover in enumerate(self.seat.tolist()):
            for action in np.flatnonzero(self.legal[number]).tolist():
                child = int(self.child[number, action])
                after = last[child] if child >= 0 else ends[-1 - child]
                after[:] = last[number]
                after[mover] = number, action
        _, first, names = np.unique(self.info_state, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        states_of = np.vstack([rank[names].reshape(self.info_state.shape), np.full(num_deals, -1)])  # row -1: none yet
        order = np.sort(first)
        situation, deal = np.divmod(order, num_deals)
        before = last[situation, self.seat[situation]]
        states = InformationStates(
            seat=self.seat[situation],
            fields={FIELD: self.observed.reshape(-1, self.observed.shape[2])[order]},
            legal=self.legal[situation],
            parent=states_of[before[:, 0], deal],
            parent_action=before[:, 1],
        )
        chips = self.payoffs.astype(np.float64).ravel()
        return DecisionTree(
            states,
            Endings(
                chance=np.full(chips.size, 1.0 / num_deals),
                returns=np.stack([chips, -chips], axis=1),
                info_state=states_of[ends[..., 0]].transpose(0, 2, 1).reshape(-1, 2),
                action=np.repeat(ends[..., 1], num_deals, axis=0),
            ),
        )


def compile_tree(start: Betting, deals: Sequence[Deal], *, num_actions: int, num_entries: int) -> BettingTree:
    """The tables of the game that starts in `start` with one of `deals`. num_entries: F."""
    situations: list[Betting] = []
    child: list[list[int]] = []
    endings: list[Betting] = []
    longest = 0

    def visit(betting: Betting, turn: int) -> int:
        nonlocal longest
        if betting.seat is None:
            endings.append(betting)
            longest = max(longest, turn)
            return -len(endings)
        number = len(situations)
        situations.append(betting)
        child.append([ILLEGAL] * num_actions)
        for action in betting.legal:
            child[number][action] = visit(betting.after(action), turn + 1)
        return number

    visit(start, 0)
    observed = np.zeros((len(situations), len(deals), num_entries), np.bool_)
    for number, betting in enumerate(situations):
        for column, deal in enumerate(deals):
            observed[number, column, list(betting.observed(deal))] = True
    _, info_state = np.unique(observed.reshape(-1, num_entries), axis=0, return_inverse=True)
    table = np.array(child, np.int64)
    return BettingTree(
        seat=np.array([betting.seat for betting in situations], np.int64),
        legal=table != ILLEGAL,
        child=table,
        payoffs=np.array([[ending.payoff(deal) for deal in deals] for ending in endings], np.float32),
        observed=observed,
        info_state=info_state.reshape(len(situations), len(deals)).astype(np.int64),
        max_turns=longest,
    )


class PokerGame(AlternatingGame):
    """N games over one betting tree.

    Observation "information_state", bool [F]: all that the seat knows, including all actions so far. Rewards are
    chips, paid at the end of a game, so that a network needs no memory and no reward is shaped.

    `fork` copies the hidden cards too: a bot that tried moves out on copies would see what no seat may
    (`EnvSpec.hidden_information`).
    """

    def __init__(self, *, env_id: str, num_envs: int, tree: BettingTree) -> None:
        """Look the sizes up; `reset` starts the games.

        Raises:
          EnvError: num_envs < 1.
        """
        num_situations, num_actions = tree.child.shape
        most = float(np.abs(tree.payoffs).max())
        self.tree = tree
        spec = EnvSpec(
            env_id=env_id,
            num_seats=2,
            observations={FIELD: ArraySpec(shape=tree.observed.shape[2:], dtype="bool")},
            actions=ActionSpec(kind="categorical", num_actions=num_actions),
            teams=(0, 1),
            has_mask=True,
            max_turns=tree.max_turns,
            seat_names=("first", "second"),
            hidden_information=True,
            return_range=(-most, most),
        )
        super().__init__(spec, num_envs=num_envs)
        self._num_deals = tree.observed.shape[1]
        self._observed = tree.observed.reshape(num_situations * self._num_deals, -1)
        self._child = tree.child.reshape(-1)
        self._situation = np.zeros(num_envs, np.int64)
        self._deal = np.zeros(num_envs, np.int64)
        self._dealt = np.zeros(0, np.int64)  # deals drawn and not yet played
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> Turn:
        """Restart every game with a new deal."""
        self._rng = np.random.default_rng(seed)
        self._dealt = np.zeros(0, np.int64)
        self._situation[:] = 0
        self._deal[:] = self._take_deals(self.num_envs)
        return self._quiet_turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Act in every game for the seat to act.

        Args:
          actions: int [N], each in [0, A) and legal.
        Raises:
          EnvError: an action is illegal; the message lists the legal ones.
        """
        situation = self._after(actions)
        ended = situation < 0
        rewards = np.zeros((self.num_envs, 2), np.float32)
        games = np.flatnonzero(ended)
        if games.size:
            won = self.tree.payoffs[-1 - situation[games], self._deal[games]]
            rewards[games, 0], rewards[games, 1] = won, -won
            situation[games] = 0
            self._deal[games] = self._take_deals(games.size)
        self._situation = situation
        return self._turn(rewards, ended)

    def decision_tree(self, *, limit_s: float = math.inf) -> DecisionTree:
        """See `TreeGame.decision_tree`; these games are small, so that there is no limit to keep."""
        return self.tree.decision_tree()

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[PokerGame, Turn]:
        """Copy the games at `env_indices` with their hidden cards; later games get new deals."""
        copies = PokerGame(env_id=self.spec.env_id, num_envs=len(env_indices), tree=self.tree)
        copies._situation, copies._deal = self._situation[env_indices], self._deal[env_indices]
        copies._rng = split_stream(self._rng)
        return copies, copies._quiet_turn()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Betting and cards of every game, the deals still to be played and the random stream."""
        return {
            "situation": self._situation.copy(),
            "deal": self._deal.copy(),
            "dealt": self._dealt.copy(),
            "rng": pack_stream(self._rng),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        self._require_same_number(saved, "deal")
        self._situation, self._deal = saved["situation"].astype(np.int64), saved["deal"].astype(np.int64)
        self._dealt = saved["dealt"].astype(np.int64)
        self._rng = unpack_stream(saved["rng"])
        return self._quiet_turn()

    def _after(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        """The entry of `BettingTree.child`, int64 [N], that each action leads to."""
        chosen, num_actions = self._integers(actions), self.spec.actions.num_actions
        after = self._child.take(self._situation * num_actions + chosen, mode="clip")
        legal = (chosen >= 0) & (chosen < num_actions) & (after != ILLEGAL)
        self._require_legal(chosen, legal)
        return after

    def _take_deals(self, count: int) -> NDArray[np.int64]:
        """The next `count` deals of the stream."""
        if count > self._dealt.size:
            drawn = self._rng.integers(self._num_deals, size=max(count, DEALS_AT_ONCE))
            self._dealt = np.concatenate([self._dealt, drawn])
        taken, self._dealt = self._dealt[:count], self._dealt[count:]
        return taken

    def _shown(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        return (
            self.tree.seat.take(self._situation),
            {FIELD: self._observed.take(self._situation * self._num_deals + self._deal, axis=0)},
            self.tree.legal.take(self._situation, axis=0),
        )

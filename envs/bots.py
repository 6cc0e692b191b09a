"""Scripted opponents: uniform play, one move of look-ahead, tree search, and perfect play by minimax."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.plugins import PluginError, first_line, load, split_options
from league.envs.protocol import BatchedEnv, EnvError, Turn
from league.envs.registry import nearest
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions

BOTS: Mapping[str, str] = {
    "random": "league.envs.bots:RandomBot",
    "tactical": "league.envs.bots:TacticalBot",
    "minimax": "league.envs.search.minimax_bot:MinimaxBot",
    "mcts": "league.envs.search.mcts:MctsBot",
}

COPIES = 8_192
"""Games that the tactical bot copies at once, about."""

FORMS = "random, tactical, minimax, mcts:N, module:attribute or path/file.py:attribute"


class Bot(Protocol):
    """A scripted opponent; like a policy, it receives the slots that must act now."""

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """Choose actions for some of the slots.

        Args:
          env: the games themselves, for bots that try moves out; the bot leaves them unchanged.
          turn: the env's present turn.
          slots: int64 [M], positions in `turn.env_index`.
        Returns:
          [M] int64 actions (categorical), [M, H] int64 (sub-actions) or [M, ...] float32 (box).
        Raises:
          EnvError: the bot cannot play this game.
        """
        ...


@runtime_checkable
class Copyable(Protocol):
    """An env that can copy its games: the method of `ForkableEnv` that bots need."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]: ...


def make_bot(name: str, *, seed: int) -> Bot:
    """Make a bot by name: "random", "tactical", "minimax", "mcts:N" (N simulations per move), or the user's own bot.

    Args:
      name: for the user's own bot, "module:attribute" or "path/file.py:attribute" of a class or function that takes
        `seed` and returns a `Bot`; options follow, as in "path/file.py:attribute?depth=3&slip=0.1".
    Raises:
      EnvError: the name is unknown (the message names the nearest), cannot be loaded, or N is not a positive number.
    """
    kind, colon, count = name.partition(":")
    if is_own_bot(name):
        return make_own_bot(name, seed=seed)
    if kind not in BOTS:
        raise EnvError(f"unknown bot {name!r}{nearest(kind, BOTS)} (write {FORMS})")
    if kind != "mcts":
        if colon:
            raise EnvError(f"the bot {kind!r} takes no number; write {kind}")
        bot: Bot = load(BOTS[kind])(seed=seed)
        return bot
    if not count.isdecimal() or int(count) < 1:
        raise EnvError(f"the bot {name!r} needs a number of simulations of 1 or more; write mcts:100")
    bot = load(BOTS[kind])(seed=seed, num_simulations=int(count))
    return bot


def is_own_bot(name: str) -> bool:
    """True if a name stands for the user's own code."""
    kind, colon, attribute = name.partition(":")
    return bool(colon) and kind not in BOTS and not attribute.isdecimal()  # mtcs:100 is a misspelt mcts:100


def make_own_bot(name: str, *given: object, seed: int) -> Bot:
    """Make a bot of the user's own; see `make_bot`.

    Args:
      given: arguments of its class or function before `seed`.
    Raises:
      EnvError: it cannot be loaded or made.
    """
    try:
        target, options = split_options(name)
        bot: Bot = load(target)(*given, seed=seed, **options)
    except PluginError as error:
        raise EnvError(f"the bot {name!r} cannot be loaded: {error}") from error
    except Exception as error:  # code of others: whatever it raises is their bot's error, not ours
        raise EnvError(f"the bot {name!r} cannot be made with seed={seed}: {type(error).__name__}: {error}") from error
    if not callable(getattr(bot, "act", None)):
        raise EnvError(f"the bot {name!r} is a {type(bot).__name__} without act(env, turn, slots)")
    return _OwnBot(bot, name)


class _OwnBot:
    """A bot of the user's own: whatever it raises, or answers in another form, is an error that names it."""

    def __init__(self, bot: Bot, name: str) -> None:
        self._bot = bot
        self._name = name

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        try:
            actions = np.asarray(self._bot.act(env, turn, slots))
        except Exception as error:  # code of others: whatever it raises is their bot's error, not ours
            raise EnvError(f"the bot {self._name!r} raised {type(error).__name__}: {first_line(error)}") from error
        numbered = env.spec.actions.kind == "categorical"
        if actions.ndim < 1 or len(actions) != len(slots) or (numbered and actions.ndim > 1):
            raise EnvError(
                f"the bot {self._name!r} answered {list(actions.shape)} actions for {len(slots)} slots; return one each"
            )
        if numbered:
            self._require_legal(actions, legal_actions(env, turn)[slots])
        return actions

    def _require_legal(self, actions: NDArray[np.generic], legal: NDArray[np.bool_]) -> None:
        """Refuse a number that is no legal action: the game would refuse it without the name of the bot.

        Args:
          actions: [M]. legal: bool [M, A].
        """
        numbers = actions.astype(np.float64) if actions.dtype.kind in "biuf" else np.full(len(actions), -1.0)
        known = (numbers >= 0) & (numbers < legal.shape[1]) & (numbers % 1 == 0)
        chosen = np.where(known, numbers, 0).astype(np.int64)
        illegal = np.flatnonzero(~known | ~legal[np.arange(len(chosen)), chosen])
        if illegal.size:
            first = int(illegal[0])
            raise EnvError(
                f"the bot {self._name!r} chose the action {actions.tolist()[first]!r}, which is illegal; legal are "
                f"{np.flatnonzero(legal[first]).tolist()}"
            )


def copies(env: BatchedEnv, turn: Turn, slots: NDArray[np.int64], *, bot: str) -> tuple[BatchedEnv, Turn]:
    """Copy the games in which `slots` act, one per slot, for a bot that tries moves out.

    Raises:
      EnvError: the games cannot be copied, several seats act at once, or a copy would show hidden cards.
    """
    env_id = env.spec.env_id
    if env.spec.hidden_information:
        raise EnvError(f"the bot {bot} tries moves out on copies, which would show it what {env_id} hides; use random")
    if not isinstance(env, Copyable):
        raise EnvError(
            f"the bot {bot} tries moves out on copies, but games of {env_id} cannot be copied (those that env.workers "
            "keeps in child processes never can); use random"
        )
    if env.spec.actions.kind != "categorical":
        raise EnvError(f"the bot {bot} needs numbered actions, {env_id} takes another kind; use random")
    acting = np.bincount(turn.env_index, minlength=env.num_envs)
    if slots.size and (acting[turn.env_index[slots]] != 1).any():
        raise EnvError(f"the bot {bot} needs one seat to act at a time, in {env_id} several do; use random")
    return env.fork(turn.env_index[slots])


def legal_actions(env: BatchedEnv, turn: Turn) -> NDArray[np.bool_]:
    """bool [K, A], the mask of a turn, or all True where the game has none."""
    if turn.action_mask is not None:
        return turn.action_mask
    return np.ones((turn.env_index.size, env.spec.actions.num_actions), np.bool_)


class RandomBot:
    """Plays uniformly over the legal actions, over the box, or over the legal choices of each sub-action."""

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        actions = env.spec.actions
        if actions.kind == "box":
            shape = (slots.size, *actions.shape)
            return self._rng.uniform(actions.low, actions.high, shape).astype(np.float32)
        if actions.kind == "multi_categorical":
            mask = None if turn.action_mask is None else turn.action_mask[slots]
            return draw_sub_actions(actions, slots.size, mask=mask, rng=self._rng)
        return uniform_legal(legal_actions(env, turn)[slots], self._rng)


class TacticalBot:
    """Wins in one move if it can, else blocks the other seat's win in one, else plays uniformly.

    A move is a block if the other seat could win with it after every other move of this seat.
    """

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """See `Bot.act`; for games of two seats."""
        if env.spec.num_seats != 2:
            raise EnvError(f"the bot tactical plays games of two seats, {env.spec.env_id} has {env.spec.num_seats}")
        legal = legal_actions(env, turn)[slots]
        if not slots.size:
            return np.zeros(0, np.int64)
        at_once = max(1, COPIES // max(legal.shape[1], 1))  # a box has no numbers, which `copies` says
        for start in range(0, slots.size, at_once):
            group = slice(start, start + at_once)
            for better in _tactics(env, turn, slots[group], legal[group]):
                legal[group] = np.where(better.any(axis=1, keepdims=True), better, legal[group])
        return uniform_legal(legal, self._rng)


def _tactics(
    env: BatchedEnv, turn: Turn, slots: NDArray[np.int64], legal: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool [K, A] each: the moves that block, and those that win at once. legal: of `slots`, bool [K, A]."""
    games, now = copies(env, turn, slots, bot="tactical")
    slot, move = np.nonzero(legal)
    assert isinstance(games, Copyable)
    with ExitStack() as opened:
        opened.enter_context(closing(games))
        tried, _ = games.fork(slot)
        opened.enter_context(closing(tried))
        after = tried.step(move)
        wins = np.zeros(legal.shape, np.bool_)
        wins[slot, move] = _won(after, now.seat[slot])
        can_win: NDArray[np.bool_] = wins.max(axis=1)
        quiet = np.flatnonzero(~after.ended & ~can_win[slot])
        return _threats(tried, after, quiet, slot=slot, move=move, legal=legal), wins


def _won(turn: Turn, seat: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool [N]: the game just ended and `seat` [N] earned more than the other of two seats."""
    games = np.arange(seat.size)
    won: NDArray[np.bool_] = turn.ended & (turn.returns[games, seat] > turn.returns[games, 1 - seat])
    return won


def _threats(
    tried: BatchedEnv,
    after: Turn,
    quiet: NDArray[np.int64],
    *,
    slot: NDArray[np.int64],
    move: NDArray[np.int64],
    legal: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """bool [K, A]: legal moves with which the other seat would win in reply to every other move.

    A reply that does not win after a slot's first two quiet moves is none. So few replies are tried after the others.

    Args:
      tried: one game for each of P (slot, move) pairs, after that move; `after` is its turn.
      quiet: positions of the pairs to look at: the game has not ended and the slot has no win.
      slot, move: int64 [P]. legal: bool [K, A].
    """
    can_reply = legal_actions(tried, after)
    place = np.arange(quiet.size) - np.searchsorted(slot[quiet], slot[quiet])  # among the quiet moves of its slot
    threats = legal.copy()
    for pairs in (quiet[place < 2], quiet[place >= 2]):
        won = _winning(tried, after, pairs, can_reply[pairs] & threats[slot[pairs]])
        won[np.arange(pairs.size), move[pairs]] = True  # that move is gone, so it says nothing of itself
        at, begin = np.unique(slot[pairs], return_index=True)
        if at.size:
            threats[at] &= np.logical_and.reduceat(won, begin, axis=0)
    others = np.repeat(np.bincount(slot[quiet], minlength=len(legal))[:, None], legal.shape[1], axis=1)
    others[slot[quiet], move[quiet]] -= 1
    return threats & (others > 0)


def _winning(tried: BatchedEnv, after: Turn, pairs: NDArray[np.int64], replies: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool [P, A]: which of the `replies` [P, A] win at once for the seat to move in the games `pairs` [P]."""
    assert isinstance(tried, Copyable)
    row, reply = np.nonzero(replies)
    won = np.zeros(replies.shape, np.bool_)
    if row.size:
        replied, _ = tried.fork(pairs[row])
        with closing(replied):
            won[row, reply] = _won(replied.step(reply), after.seat[pairs[row]])
    return won

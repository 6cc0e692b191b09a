"""Critical positions of Connect Four: the fraction of a policy's moves that keep the result of perfect play.

A position is critical when some of its legal moves keep the game-theoretic result (win, draw or loss) and others throw
it away. The positions and the perfect solver's score of every move lie in `tests/golden/connect_four_critical.json`.
`python -m benchmarks.strength.positions` made the file with the solver of the extra `bench`; measuring needs no solver.

Shape letters: P positions, A = 7 columns.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Policy
from league.envs.bots import TacticalBot
from league.envs.games.connect_four import COLS, ConnectFour
from league.envs.sampling import uniform_legal
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy

FILE = Path(__file__).resolve().parents[2] / "tests" / "golden" / "connect_four_critical.json"
NUM_POSITIONS = 500
FEWEST_PLIES, MAX_PLIES = 8, 16
"""Later positions are solved by looking a few moves ahead. In this range mcts:100 keeps 0.69 of the results."""
TACTICAL_SHARE = 0.5
"""Of the moves that lead to a position; the others are uniform. After play at random alone, half of the positions hold
a win in one, which tests little."""
BATCH = 1024

Scorer = Callable[[Sequence[int]], Sequence[int | None]]
"""Columns played so far -> [A] worth of each column to the seat to move: above 0 a win, below 0 a loss, full None."""


@dataclass(frozen=True)
class Position:
    """Fields: moves: columns played from the empty board on. scores: [A], as a `Scorer` gives them."""

    moves: tuple[int, ...]
    scores: tuple[int | None, ...]

    def keeping(self) -> NDArray[np.bool_]:
        """bool [A], the moves after which the result under perfect play is still the best one there is."""
        results = [-2 if score is None else (score > 0) - (score < 0) for score in self.scores]
        kept: NDArray[np.bool_] = np.array(results) == max(results)
        return kept

    @property
    def legal(self) -> NDArray[np.bool_]:
        """bool [A]."""
        return np.array([score is not None for score in self.scores])

    @property
    def critical(self) -> bool:
        """True if a legal move throws the result away."""
        return bool((self.legal & ~self.keeping()).any())


def stored_positions(path: Path = FILE) -> list[Position]:
    """The positions of the file."""
    rows = json.loads(path.read_text())["positions"]
    return [Position(tuple(int(move) for move in row["moves"]), tuple(row["scores"])) for row in rows]


def chance(positions: Sequence[Position]) -> float:
    """Fraction of positions in which uniform play keeps the result."""
    return float(np.mean([position.keeping().sum() / position.legal.sum() for position in positions]))


def keeps(policy: LoadedPolicy | LoadedMixture, positions: Sequence[Position]) -> float:
    """Share of the positions in which the likeliest move keeps the result; of a mixture, expected over its draw."""
    total = sum(weight for weight, _ in policy.members)
    return sum(
        weight / total * moves_keep(member.as_seat_policy(greedy=True), positions) for weight, member in policy.members
    )


def moves_keep(policy: Policy, positions: Sequence[Position], *, seed: int = 0) -> float:
    """Share of the positions in which the move of a seat policy keeps the result. seed: of a policy that samples."""
    chosen = answers(policy, positions, rng=np.random.default_rng(seed))
    return float(
        np.mean([position.keeping()[column] for position, column in zip(positions, chosen.tolist(), strict=True)])
    )


def answers(policy: Policy, positions: Sequence[Position], *, rng: np.random.Generator) -> NDArray[np.int64]:
    """int64 [P], the column that a policy without a memory plays in each position."""
    games = ConnectFour(num_envs=len(positions))
    turn = games.reset(0)
    lengths = np.array([len(position.moves) for position in positions])
    chosen = np.full(len(positions), -1, np.int64)
    core_size = int(getattr(policy, "core_size", 0))
    for ply in range(int(lengths.max()) + 1):
        here = np.flatnonzero(lengths == ply)
        if len(here):
            copies, asked = games.fork(here)
            view = ActInputs(copies, asked, np.arange(len(here)), np.zeros((len(here), core_size), np.float32))
            chosen[here] = policy.act(view, rng).actions
        assert turn.action_mask is not None
        actions = turn.action_mask.argmax(axis=1)  # of games that have been asked about: anything legal
        for place in np.flatnonzero(lengths > ply).tolist():
            actions[place] = positions[place].moves[ply]
        turn = games.step(actions)
    return chosen


def make_positions(score: Scorer, *, count: int, seed: int) -> list[Position]:
    """Critical positions of seeded play, no two with the same stones; each length is asked for alike often.

    Args:
      score: of a perfect solver.
    """
    rng = np.random.default_rng(seed)
    found: dict[bytes, Position] = {}
    while len(found) < count:
        for moves in _sampled_play(rng):
            stones = _stones(moves)
            if stones in found:
                continue
            position = Position(moves, tuple(score(moves)))
            if position.critical:
                found[stones] = position
            if len(found) == count:
                break
    return list(found.values())


def _sampled_play(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """The moves of games that have come to a length drawn beforehand without ending."""
    games = ConnectFour(num_envs=BATCH)
    turn = games.reset(0)
    bot = TacticalBot(seed=int(rng.integers(2**31)))
    lengths = rng.integers(FEWEST_PLIES, MAX_PLIES + 1, BATCH)
    played = np.full((BATCH, MAX_PLIES), -1, np.int64)
    alive = np.ones(BATCH, np.bool_)
    for ply in range(MAX_PLIES):
        assert turn.action_mask is not None
        actions = uniform_legal(turn.action_mask, rng)
        tactical = np.flatnonzero(rng.random(BATCH) < TACTICAL_SHARE)
        actions[tactical] = bot.act(games, turn, tactical)
        played[:, ply] = actions
        turn = games.step(actions)
        alive &= ~turn.ended | (lengths <= ply)  # an end after the drawn length does not matter
    return [tuple(played[game, : lengths[game]].tolist()) for game in np.flatnonzero(alive)]


def _stones(moves: Sequence[int]) -> bytes:
    """The board after these moves, whoever's turn it was when."""
    heights, board = [0] * COLS, bytearray(6 * COLS)
    for ply, column in enumerate(moves):
        board[heights[column] * COLS + column] = 1 + ply % 2
        heights[column] += 1
    return bytes(board)


def perfect_scorer() -> Scorer:
    """The solver of the extra `bench`, with its book of openings."""
    from bitbully import BitBully, Board

    solver = BitBully()

    def score(moves: Sequence[int]) -> list[int | None]:
        board = Board()
        for move in moves:
            board.play(move)
        found = solver.score_all_moves(board)  # full columns are left out
        return [int(found[column]) if column in found else None for column in range(COLS)]

    return score


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    positions = make_positions(perfect_scorer(), count=NUM_POSITIONS, seed=options.seed)
    rows = [
        {"moves": "".join(str(move) for move in position.moves), "scores": position.scores} for position in positions
    ]
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    how = json.dumps(
        f"python -m benchmarks.strength.positions --seed {options.seed}: {NUM_POSITIONS} critical positions after"
        f" {FEWEST_PLIES} to {MAX_PLIES} plies, {TACTICAL_SHARE:g} of them tactical; scores of every column for the"
        " seat to move by bitbully, above 0 a win, below 0 a loss, null where full"
    )
    options.out.write_text(f'{{"how": {how},\n "positions": [\n  {lines}\n]}}\n')
    print(f"{options.out}: {len(positions)} positions, of which uniform play keeps {chance(positions):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

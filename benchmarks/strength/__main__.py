"""Strength of policies after a fixed budget: one command for every game, the league against its controls.

A game's own file in `games/` says what is trained and what is held against which bound. With `--runs DIR` the
run folders are kept: a finished run is used again, an interrupted one resumed, so that hours of work survive and the
evaluation can be repeated. With `--results DIR` the figures of each run of poker and `connect_four_standard` are kept,
a small file each: what is known there under the same conditions, the evaluation seed among them, is not trained again.
`benchmarks/results` holds those that the README shows. `--seeds` and `--populations` choose a part.
"""

from __future__ import annotations

import argparse
import functools
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.games import connect_four, cyclic, demo, poker, tic_tac_toe
from benchmarks.strength.runs import FOLDER_WORDS, Plan


@dataclass(frozen=True)
class Game:
    """The measurement behind a name on the command line. populations: those that it knows, all by default."""

    measure: Callable[[Plan], Report]
    populations: tuple[str, ...]


GAMES: Mapping[str, Game] = {
    "connect_four": Game(demo.measure, demo.POPULATIONS),
    "connect_four_standard": Game(connect_four.measure, connect_four.POPULATIONS),
    "tic_tac_toe": Game(tic_tac_toe.measure, tic_tac_toe.POPULATIONS),
    **{name: Game(functools.partial(poker.measure, name), poker.POPULATIONS) for name in poker.GAMES},
    **{name: Game(functools.partial(cyclic.measure, [name]), cyclic.POPULATIONS) for name in cyclic.GAMES},
    "cyclic": Game(functools.partial(cyclic.measure, cyclic.ONE_SHOT), cyclic.POPULATIONS),
}


def chosen_populations(words: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The populations that a list on the command line names; a folder's word ("half") will do.

    Raises:
      ValueError: one that the game does not know.
    """
    if words is None:
        return tuple(known)
    by_word = {FOLDER_WORDS[population]: population for population in known}
    named = [word.strip() for word in words.split(",")]
    unknown = [word for word in named if word not in known and word not in by_word]
    if unknown:
        raise ValueError(f"unknown populations {', '.join(unknown)}; this game has {', '.join(known)}")
    return tuple(by_word.get(word, word) for word in named)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strength", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", choices=sorted(GAMES), default="connect_four")
    parser.add_argument("--seeds", default="0,1,2", help="training seeds, comma-separated")
    parser.add_argument("--populations", help="comma-separated (default: all that the game knows)")
    parser.add_argument("--core-seconds", type=float, help="budget of each run (default: the game's)")
    parser.add_argument("--seconds", type=float, default=180.0, help="budget by the clock, of connect_four alone")
    parser.add_argument("--games", type=int, default=400, help="games of each match")
    parser.add_argument("--evaluation-seed", type=int, help="default: a new one, printed")
    parser.add_argument("--runs", type=Path, help="keep the run folders here (default: a folder that is removed)")
    parser.add_argument(
        "--results", type=Path, help="keep figures here and use those that are here (default: as --runs)"
    )
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args(arguments)
    game = GAMES[options.game]
    try:
        populations = chosen_populations(options.populations, game.populations)
    except ValueError as error:
        parser.error(str(error))
    evaluation_seed = options.evaluation_seed if options.evaluation_seed is not None else secrets.randbelow(2**31)
    print(f"evaluation seed {evaluation_seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="league-strength-") as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        plan = Plan(
            seeds=tuple(int(seed) for seed in options.seeds.split(",")),
            populations=populations,
            core_seconds=options.core_seconds,
            seconds=options.seconds,
            games=options.games,
            evaluation_seed=evaluation_seed,
            folder=folder.resolve(),
            results=options.results and options.results.resolve(),
        )
        report = game.measure(plan)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The judge: errors of the sequential test by simulation, a tournament killed twice, engines that play to the end."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Row
from league.envs.notation.notation import CHESS, notation_of
from league.envs.protocol import EnvConfig
from league.envs.registry import make, spec_of
from league.judge.contenders.contender import Game, UnknownContender
from league.judge.contenders.finding import find_contenders, require_playable
from league.judge.matches.contest import ContestConditions, open_batch
from league.judge.matches.sprt import PAIR_SCORES, SprtConfig, expected_score, log_likelihood_ratio
from league.judge.tournaments.records import EVENTS, BatchPlayed
from league.store.journal_reader import JournalReader

MATCHES = 4_000
"""Simulated matches for each truth."""
PAIRS_A_LOOK = 32
MAX_PAIRS = 64_000
TESTS = (SprtConfig(elo0=0.0, elo1=10.0), SprtConfig(elo0=-5.0, elo1=5.0, alpha=0.1, beta=0.02))
PAIRS: Mapping[str, tuple[float, ...]] = {
    "independent games, a third drawn": (0.11, 0.22, 0.34, 0.22, 0.11),
    "openings decide most pairs": (0.02, 0.08, 0.8, 0.08, 0.02),
}
"""Kind of pairs -> chances of the five scores of a pair between equals."""

RUNS, CORE_SECONDS = 3, 4
OF_EACH_RUN = ("last", "main-0-s1", "main-0-s4")
BOTS = ("bot:random", "bot:tactical", "bot:mcts:10")
GAMES, BATCH_GAMES = 40, 20
KILLS_AFTER = (9, 60)
"""Batches in the journal at which the tournament is killed."""
DEADLINE_S = 900.0

ENGINES = (
    ("uci:stockfish?nodes=20", EnvConfig("openspiel:chess")),
    ("uci:stockfish?nodes=20", EnvConfig("pettingzoo:classic/chess_v6")),
    ("gtp:gnugo?level=1", EnvConfig("openspiel:go(board_size=9)")),
    ("gtp:gnugo?level=1", EnvConfig("pettingzoo:classic/go_v5", {"board_size": 9})),
)
ENGINE_GAMES, NAMED_GAMES = 4, 10


def sequential_test(folder: Path) -> list[Row]:
    """Share of wrong verdicts under either hypothesis, and between them that every match ends."""
    report = Report()
    rng = np.random.default_rng(16)
    for config in TESTS:
        name = f"SPRT {config.elo0:g} against {config.elo1:g} Elo, {MATCHES:,} matches"
        for kind, chances in PAIRS.items():
            truths = (config.elo0, config.elo1, 0.5 * (config.elo0 + config.elo1))
            verdicts, games = zip(*(simulate(config, chances, truth, rng) for truth in truths), strict=True)
            report.add(f"{name}, {kind}: H1 where H0 holds", _share(verdicts[0], 1), "", at_most=config.alpha)
            report.add(f"{name}, {kind}: H0 where H1 holds", _share(verdicts[1], -1), "", at_most=config.beta)
            ended = 1.0 - _share(verdicts[2], 0)
            report.add(f"{name}, {kind}: ended in the middle", ended, "", at_least=0.99)
            report.add(f"{name}, {kind}: H1 in the middle", _share(verdicts[2], 1), "")
            for truth, mean in zip(("H0", "H1", "the middle"), games, strict=True):
                report.add(f"{name}, {kind}: mean games where {truth} holds", mean, "games")
    return report.rows


def simulate(
    config: SprtConfig, chances: Sequence[float], truth_elo: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], float]:
    """Verdicts (1 for H1, -1 for H0, 0 for none) of `MATCHES` matches, and the mean number of games."""
    tilted = with_mean(np.array(chances), expected_score(truth_elo))
    counts = np.zeros((MATCHES, len(PAIR_SCORES)), np.int64)
    verdicts, open_ = np.zeros(MATCHES, np.int64), np.arange(MATCHES)
    pairs = 0
    for _ in range(MAX_PAIRS // PAIRS_A_LOOK):
        counts[open_] += rng.multinomial(PAIRS_A_LOOK, tilted, size=len(open_))
        pairs += PAIRS_A_LOOK * len(open_)
        ratios = log_likelihood_ratio(counts[open_], config)
        verdicts[open_] = (ratios >= config.upper).astype(np.int64) - (ratios <= config.lower)
        open_ = open_[verdicts[open_] == 0]
        if not len(open_):
            break
    return verdicts, 2.0 * pairs / MATCHES


def with_mean(chances: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """The chances, tilted exponentially until their mean is `mean`."""
    low, high = -20.0, 20.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        tilted = chances * np.exp(middle * PAIR_SCORES)
        tilted /= tilted.sum()
        low, high = (middle, high) if float(tilted @ PAIR_SCORES) < mean else (low, middle)
    return tilted


def killed_tournament(folder: Path) -> list[Row]:
    """Twelve contenders, nine of three trained runs and three bots: unbroken, and killed twice by SIGKILL."""
    report = Report()
    runs = [_trained(folder / f"run-{seed}", seed) for seed in range(RUNS)]
    names = [*(f"{run}:{name}" for run in runs for name in OF_EACH_RUN), *BOTS]
    words = [*names, "--games", str(GAMES), "--batch-games", str(BATCH_GAMES), "--jobs", "2", "--record"]
    _tournament(folder / "unbroken", words).communicate(timeout=DEADLINE_S)
    left = 0
    for batches in KILLS_AFTER:
        process = _tournament(folder / "broken", words)
        _wait_for(folder / "broken", batches, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        left += _left_of(process.pid)
    between = len(_batches(folder / "broken"))
    last = _tournament(folder / "broken", words)
    last.communicate(timeout=DEADLINE_S)
    unbroken, broken = (_batches(folder / name) for name in ("unbroken", "broken"))
    pairings = math.comb(len(names), 2)
    report.add("tournament: contenders", len(names), "", at_least=12)
    report.add("tournament: kills by SIGKILL", len(KILLS_AFTER), "", at_least=2)
    report.add("tournament: batches recorded before the last start", between, f"of {len(unbroken)}")
    report.add("tournament: processes left 5 s after a kill", left, "", at_most=0)
    report.add("tournament: games", sum(batch.games for batch in broken), "", at_least=pairings * GAMES)
    report.add("tournament: batches recorded twice", len(broken) - len({batch.key for batch in broken}), "", at_most=0)
    different = sum(a != b for a, b in zip(sorted(unbroken, key=_key), sorted(broken, key=_key), strict=True))
    report.add("tournament: batches unlike those of the unbroken one", different, "", at_most=0)
    for name in ("report.json", "standings.csv", "report.html"):
        same = (folder / "unbroken" / name).read_bytes() == (folder / "broken" / name).read_bytes()
        report.add(f"tournament: {name} equal byte for byte", float(same), "", at_least=1)
    return report.rows


def engines(folder: Path) -> list[Row]:
    """Names of moves over whole random games, and whole games of the engines that are installed."""
    report = Report()
    for env_id, kwargs in dict.fromkeys((env.id, json.dumps(env.kwargs)) for _, env in ENGINES):
        config = EnvConfig(env_id, json.loads(kwargs))
        named, wrong = named_moves(config)
        report.add(f"{config.id}: legal actions named in {NAMED_GAMES} random games", named, "", at_least=1_000)
        report.add(f"{config.id}: actions whose name stands for another move", wrong, "", at_most=0)
    for written, env in ENGINES:
        game = Game(env, spec_of(env))
        name = f"{written} against random play, {env.id}"
        try:
            lineup = find_contenders([written, "bot:random"])
            require_playable(lineup, game)
        except UnknownContender:
            report.add(f"{name}: games aborted", None, "", at_most=0)
            continue
        began = time.monotonic()
        with open_batch(game, lineup, ContestConditions(), number=0) as match:
            result = match.play(ENGINE_GAMES)
        report.add(f"{name}: games aborted", sum(result.aborted), "", at_most=0)
        report.add(f"{name}: score", result.score().value, "", at_least=0.75)
        report.add(f"{name}: time of a turn", (time.monotonic() - began) / result.steps, "s")
    return report.rows


def named_moves(config: EnvConfig) -> tuple[int, int]:
    """Legal actions met in random games, and how many do not come back from their name."""
    notation = notation_of(config, spec_of(config))
    assert notation is not None
    named = wrong = 0
    rng = np.random.default_rng(16)
    for seed in range(NAMED_GAMES):
        with closing(make(config, num_envs=1)) as env:
            turn, position = env.reset(seed), notation.start()
            while not turn.ended[0]:
                assert turn.action_mask is not None
                legal = np.flatnonzero(turn.action_mask[0]).tolist()
                names = [position.name(action) for action in legal]
                wrong += sum(position.action(name) != action for name, action in zip(names, legal, strict=True))
                wrong += len(names) - len(set(names))
                if notation.game == CHESS:
                    wrong += len({move.uci() for move in position.board.legal_moves} ^ set(names))  # type: ignore[attr-defined]
                named += len(legal)
                action = int(rng.choice(legal))
                position.push(action)
                turn = env.step(np.array([action]))
    return named, wrong


def _share(verdicts: NDArray[np.int64], verdict: int) -> float:
    return float((verdicts == verdict).mean())


def _trained(path: Path, seed: int) -> Path:
    words = ["train", "tic_tac_toe", "--core-seconds", str(CORE_SECONDS), "--no-eval", "--run-dir", str(path)]
    _league([*words, "-s", "runtime.kind=inprocess", "-s", f"seed={seed}"], path.parent).communicate(timeout=DEADLINE_S)
    shutil.rmtree(path / "checkpoints", ignore_errors=True)
    return path


def _tournament(out: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
    return _league(["tournament", *words, "--out", str(out)], out.parent)


def _league(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """A command in a session of its own, so that what is left of it can be found."""
    log = (folder / "log").open("ab")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "league", *words],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _batches(out: Path) -> list[BatchPlayed]:
    with JournalReader.open_readonly(out / "tournament.db", events=EVENTS) as journal:
        return [event for _, event in journal.replay() if isinstance(event, BatchPlayed)]


def _key(batch: BatchPlayed) -> str:
    return str(batch.key)


def _wait_for(out: Path, batches: int, process: subprocess.Popen[bytes]) -> None:
    """Until so many batches are recorded."""
    deadline = time.monotonic() + DEADLINE_S
    while not (out / "tournament.db").exists() or len(_batches(out)) < batches:
        assert process.poll() is None and time.monotonic() < deadline, "it ended, or hung, before it could be killed"
        time.sleep(0.05)


def _left_of(session: int) -> int:
    """Processes of a session that are still there after 5 s."""
    deadline = time.monotonic() + 5.0
    while (alive := _session(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return len(alive)


def _session(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(folder.name))
    return found


ROWS: dict[str, Callable[[Path], list[Row]]] = {
    "sequential_test": sequential_test,
    "killed_tournament": killed_tournament,
    "engines": engines,
}

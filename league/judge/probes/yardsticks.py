"""The probe against fixed yardsticks: bots, engines, served policies and frozen references of other runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from league.core.metagame.stagnation import TELLING
from league.core.probes import MAX_READINGS
from league.core.state.records import ProbeReading, bot_name
from league.envs.bots import is_own_bot
from league.envs.protocol import EnvError
from league.errors import LeagueError
from league.judge.contenders.bots import BotContender
from league.judge.contenders.contender import Contender, Game, OpenConditions, plain_game
from league.judge.contenders.finding import find_contenders, require_playable, shape_of, with_bot_prefix
from league.judge.matches.timed import affordable
from league.judge.probes.matches import readings_against
from league.judge.probes.probe import DoesNotFit, PlayOptions, Subject, require_opponents

DECISIONS = 20.0
"""Decisions of a bot in a game, for an estimate of its cost."""
LADDER = ("mcts:25", "mcts:100", "mcts:400")
"""Searches that are met beside the named yardsticks, one after the other, while all before them are saturated."""
SATURATED = TELLING[1]
"""Score above which a yardstick tells policies apart no more."""


@dataclass(frozen=True)
class YardsticksOptions(PlayOptions):
    """Options beside the number of games against each yardstick, half from either seat, and their time.

    A bot too slow for its part of that time is left out. Where the snapshot beats every one of them nearly always,
    it meets mcts:25 too, then mcts:100 and mcts:400, as far as the time reaches.

    Fields:
      against: contenders as `league match` takes them; a name without a kind is a bot. Empty for `evaluation.bots`.
    """

    against: tuple[str, ...] = ()


class Yardsticks:
    """Score of the snapshot against each yardstick that can play; the others are named, and asked again next time."""

    least_core_seconds = 1.0
    num_past = 0

    def __init__(self, options: YardsticksOptions) -> None:
        self._options = options
        self._found: dict[str, tuple[Contender, ...]] = {}
        """Written name -> whom it stands for, once they have shown that they can play."""

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading for each yardstick that can be played in time, and more while all of them are saturated."""
        require_opponents(subject)
        begun, limit_s = time.process_time(), min(self._options.core_seconds, subject.limit_s)
        written = self._options.against or subject.bots
        readings = self._measured(subject, written, limit_s=limit_s)
        for search in (search for search in LADDER if search not in {bot_name(name) for name in written}):
            left_s = limit_s - (time.process_time() - begun)
            if left_s <= 0.0 or any(reading.value <= SATURATED for reading in readings):
                break
            try:
                readings += self._measured(subject, (search,), limit_s=left_s)
            except LeagueError as error:
                subject.remark(f"every yardstick is saturated, and no stronger one can be met: {error}")
                break
        return readings

    def _measured(self, subject: Subject, written: Sequence[str], *, limit_s: float) -> tuple[ProbeReading, ...]:
        known = self._playable(subject, written, limit_s=limit_s)
        conditions = OpenConditions(subject.seed, subject.greedy)
        with ExitStack() as opened:
            game = _game(subject)
            opponents = {name: opened.enter_context(one.open(game, conditions)) for name, one in known.items()}
            notes = {name: _note(one) for name, one in known.items()}
            games = self._options.games
            readings = readings_against(subject, opponents, games=games, limit_s=limit_s, notes=notes)
        return tuple(replace(reading, identity=_identity(known[reading.yardstick])) for reading in readings)

    def _playable(self, subject: Subject, names: Sequence[str], *, limit_s: float) -> dict[str, Contender]:
        """Name of the yardstick -> the contender.

        Raises:
          DoesNotFit: none of them plays this game. LeagueError: none can be had now.
        """
        key = f"{subject.place}.against" if self._options.against else "evaluation.bots"
        unfit, lost, known = list[str](), list[str](), dict[str, Contender]()
        for number, written in enumerate(names):
            try:
                found = self._find(written)
            except (LeagueError, EnvError) as error:
                lost.append(f"{key}.{number}: {error}")
                continue
            try:
                self._require_fit(written, found, subject)
            except (LeagueError, EnvError) as error:
                unfit.append(f"{key}.{number}: {written} does not play {subject.env.id}: {error}")
                continue
            known.update({bot_name(one.name): one for one in found})
        bots = [name for name, one in known.items() if isinstance(one, BotContender)]
        kept, slow = affordable(
            subject.env,
            bots,
            limit_s=limit_s,
            players=1,
            games=self._options.games,
            decisions=DECISIONS,
            seed=subject.seed,
            clock=time.process_time,
        )
        playable = {name: one for name, one in known.items() if name not in bots or name in kept}
        problems = [*lost, *unfit, *slow]
        if not playable:
            text = "; ".join(problems) or f"no yardstick is named: give {subject.place}.against"
            raise (LeagueError if lost or slow else DoesNotFit)(text)
        if len(playable) > MAX_READINGS:
            raise LeagueError(f"{key}: {len(playable)} yardsticks are more than {MAX_READINGS}: name fewer of them.")
        for sentence in problems:
            subject.remark(sentence)
        return playable

    def _find(self, written: str) -> tuple[Contender, ...]:
        return self._found.get(written) or find_contenders([with_bot_prefix(written)])

    def _require_fit(self, written: str, found: tuple[Contender, ...], subject: Subject) -> None:
        """Raises LeagueError or EnvError where one of them cannot play this game; asked once of each."""
        if written in self._found:
            return
        for one in found:
            if one.game is not None and shape_of(one.game.spec) != shape_of(subject.spec):
                raise LeagueError(f"{one.name} was trained on {one.game.env.id}, which has another form.")
        require_playable(found, _game(subject))
        self._found[written] = found


def _game(subject: Subject) -> Game:
    return plain_game(subject.env, subject.spec)


def _note(contender: Contender) -> str:
    """A few words on a yardstick that is no bot."""
    return "" if isinstance(contender, BotContender) else f"{contender.reason} ({_identity(contender)})"


def _identity(contender: Contender) -> str:
    """The beginning of its identity; empty for a built-in bot, which its name says all about."""
    built_in = isinstance(contender, BotContender) and not is_own_bot(bot_name(contender.name))
    return "" if built_in else contender.identity[:8]

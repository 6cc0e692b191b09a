"""Random play of built-in games that is remembered: of each, runs of one process of tests measure the first alone."""

from __future__ import annotations

from league.config.auto import measure
from league.envs.facts.game_facts import ENOUGH_EPISODES, GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.protocol import EnvConfig
from league.envs.registry import ADAPTERS, BUILT_IN

_known: dict[str, GameFacts] = {}


class RememberedPlay(RandomPlay):
    """Plays as a `RandomPlay` does, but nothing whose facts are known of an equal play before.

    Played every time: a game of a test's own, which may be another one under the same id; and what has to repeat
    exactly, as tests hold.
    """

    def __init__(self, config: EnvConfig, *, seconds: float | None) -> None:
        super().__init__(config, seconds=seconds)
        is_ours = config.id in BUILT_IN or config.id.partition(":")[0] in ADAPTERS
        self._key = f"{config} {seconds}" if is_ours and seconds is not None else ""

    def run(self) -> None:
        if self._key in _known:
            return
        super().run()
        if self._key:
            found = super().facts()
            if found is not None and found.episodes >= ENOUGH_EPISODES:  # else the machine was too busy
                _known[self._key] = found

    def facts(self) -> GameFacts | None:
        return _known.get(self._key) or super().facts()


def remember_games() -> None:
    """Let new runs of this process rest on what earlier ones have measured of the same game."""
    measure.RandomPlay = RememberedPlay  # type: ignore[misc]

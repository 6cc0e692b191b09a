"""Makes or opens the folder of a league whose trainer is the user's own."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from league.config.commented import dump_commented
from league.config.game_kind import creation_of
from league.config.loading import config_of, plain_config
from league.config.plugin_names import outside_names
from league.config.run_config import RunConfig, config_plain, plain_of
from league.config.yaml import yaml_text
from league.envs import registry
from league.envs.plugins import admit
from league.envs.registry import GivenGame, spec_of
from league.errors import LeagueError
from league.policies.own_code import note_code
from league.policies.trust import mark
from league.run.config_changes import noted_config, settled_config
from league.store.journaled_league import JournaledLeague
from league.store.known_runs import note_run
from league.store.run_folder import RunFolder
from league.store.storage import Storage

ONE_MAIN_AGENT: Mapping[str, Any] = {"players": [{"role": "main_agent"}]}


@dataclass(frozen=True)
class Asked:
    """The words of the user's program, in plain values as a configuration has them.

    Fields:
      sections: of the configuration that it gives.
    """

    sections: Mapping[str, Any]

    @classmethod
    def of(cls, env: GivenGame, *, settings: Mapping[str, Any], seed: int, loader: str) -> Asked:
        """The sections of these arguments of `League`. Raises EnvError: the game is given in no known form."""
        trainer = {"kind": "own", "loader": loader}
        game = plain_of(registry.config_of(env))
        return cls({"env": game, "seed": seed, "trainer": trainer, "league": dict(settings)})

    @property
    def overrides(self) -> list[str]:
        """As "key=value" over a configuration that is there."""
        return [f"{section}={json.dumps(value)}" for section, value in self.sections.items()]

    def config(self, source: str) -> RunConfig:
        """The whole configuration. Raises ConfigError, with every problem at once."""
        beside = {"evaluation": {"bots": []}, "wandb": {"mode": "disabled"}}
        plain, problems = plain_config(yaml_text({**self.sections, **beside}), source=source)
        admit(found.entry for found in outside_names(plain))
        return config_of(plain, problems, source=source)


@dataclass(frozen=True)
class OpenLeague:
    """An open folder. held: its lock and the open journal, released at the end."""

    config: RunConfig
    folder: RunFolder
    league: JournaledLeague
    held: contextlib.ExitStack


def opened(path: Path, asked: Asked, *, storage: Storage | None = None) -> OpenLeague:
    """The league of a folder, continued or new.

    Args:
      storage: writes its files.
    Raises:
      RunInUse: another process has it. LeagueError, EnvError: it does not fit what is asked for.
    """
    folder, config = RunFolder(path, storage=storage), asked.config(str(path))
    if not folder.config_path.exists():
        creation_of(config, spec_of(config.env))  # refused before a folder is made
        folder = RunFolder.create(path, config_yaml=dump_commented(config, {}), storage=storage)
    with contextlib.ExitStack() as held:
        held.enter_context(folder.lock)
        league = _journal(folder)
        held.callback(league.close)
        config = settled_config(folder, league, overrides=asked.overrides)
        if config.trainer.kind != "own":
            raise LeagueError(f"{path} is trained by `league train`: give `league.League` a folder of its own.")
        if league.state.config is None:
            league.execute(creation_of(config, spec_of(config.env)))
            league.execute(noted_config(folder.read_config()))
            league.commit()
        names = [*outside_names(config_plain(config))]
        mark(folder, names)
        note_code(folder, names)
        note_run(folder.path)
        return OpenLeague(config, folder, league, held.pop_all())


def _journal(folder: RunFolder) -> JournaledLeague:
    """The journal, made where a start was killed before it made one."""
    if not folder.journal_path.exists() and folder.read_status() is None:
        return JournaledLeague.create(folder.journal_path, wall_time=time.time, storage=folder.storage)
    return JournaledLeague.open(
        folder.journal_path, at_least_seq=folder.durable_seq(), wall_time=time.time, storage=folder.storage
    )

"""Loads the policy that a name stands for, to play with: what Python users call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from league.config.contender_names import HUB
from league.envs.plugins import is_admitted
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import GivenGame, config_of, spec_of
from league.policies.auto_export import AUTO
from league.policies.exact.exports import open_to_play
from league.policies.fetched.hub import fetch_hub
from league.policies.frozen import FrozenFolder
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import load_from_run, load_frozen, open_frozen, open_run
from league.policies.package import is_frozen_folder, read_frozen_folder
from league.policies.policy_store import env_of
from league.policies.select import DRAWN
from league.policies.trust import names_of_manifest, trust_places


def load_policy(
    run_or_snapshot: str | Path,
    player: str = AUTO,
    *,
    greedy: bool = False,
    seed: int = 0,
    env: GivenGame | None = None,
    trust: bool = False,
) -> LoadedPolicy | LoadedMixture:
    """A policy to play with.

    "auto" takes what is known of the run's exports and never waits. For "exact" their exact exploitability is computed
    and kept in its folder, which takes up to a minute, see `league.policies.exact.exports`.

    A folder that this user's own `league train` did not make gives weights only: code that it names is not loaded, see
    `league.policies.trust`.

    Args:
      run_or_snapshot: a run folder (also of a live run), the folder of one snapshot, or that of an exported policy;
        hf://OWNER/NAME[@REVISION] fetches one from a model hub first, see `league.policies.fetched.hub`.
      player: "auto": the one to play, the strongest where all see everything and move in turn, else the least
        exploitable as far as is known. "ema": the moving average of the strongest main agent's weights; "last": its
        last weights. "best": the newest snapshot of a main agent that is as strong as its strongest. Before a trained
        one has rated games, all three are of the main agent that trained most. "mixture": of main agents' snapshots,
        one that no other reliably beats. "average": the second half of the main agents' snapshots. "exact": the
        mixture of them that loses least to exact best replies, in small games. A snapshot's id, or a tag of it. A
        player's id: its learner as last saved, or its newest snapshot if that is newer. Or a mixture of these:
        "main-0-s7*2+main-0-s9" draws the first in 2 games of 3.
      greedy: take the likeliest action instead of sampling.
      seed: of sampled actions and drawn members, until `reset` is given another.
      env: the game to make instead of the one that the folder names, as an id, the function or class that makes it, or
        an EnvConfig. It is for folders made elsewhere: the path of the game's file, for example, may differ here.
        Exact values are not computed then, but those that are known count.
      trust: whether to load code that the folder names, regardless of its author.
    Raises:
      Untrusted: the folder names code that this user has not trusted.
      LeagueError: no such run or player, or a damaged file; one sentence with what to do.
      EnvError: the game that it was trained on cannot be made here.
    """
    path, game = _folder_of(run_or_snapshot), None if env is None else config_of(env)
    if trust:
        trust_places([path])
    if is_frozen_folder(path):
        return _load_folder(path, player, greedy=greedy, seed=seed, env=game)
    run = open_to_play(path, [player]) if game is None else open_run(path, env=game)
    return load_from_run(run, player, greedy=greedy, seed=seed)


def _folder_of(written: str | Path) -> Path:
    return fetch_hub(written) if isinstance(written, str) and written.startswith(HUB) else Path(written)


def _load_folder(
    folder: Path, player: str, *, greedy: bool, seed: int, env: EnvConfig | None
) -> LoadedPolicy | LoadedMixture:
    frozen = read_frozen_folder(folder)
    spec = frozen.spec if env is None and not _may_make_game(frozen) else open_frozen(folder, env=env)[0].spec
    assert spec is not None, "only a package describes a game that is not made"
    frozen.require(player)
    if player in DRAWN:
        frozen = replace(frozen, is_drawn=True)
    return load_frozen(frozen, spec, greedy=greedy, seed=seed)


def _may_make_game(frozen: FrozenFolder) -> bool:
    """False for a package whose game is code of others, or is not installed here: its own facts do then."""
    manifest = frozen.copies[0].manifest
    if frozen.spec is None:
        return True
    if any(found.kind == "env" and not is_admitted(found.entry) for found in names_of_manifest(manifest)):
        return False
    try:
        spec_of(env_of(manifest))
    except EnvError:
        return False
    return True

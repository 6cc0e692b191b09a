"""Contenders with weights: of a run, the folder of a snapshot, a folder of several, or an exported package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from league.agents.acting.policy import Policy
from league.config.contender_names import split_source
from league.core.state.records import BOT_PREFIX
from league.envs.bots import BOTS
from league.envs.registry import spec_of
from league.judge.contenders.contender import Game, OpenConditions, UnknownContender, identity_of, plain_game
from league.judge.contenders.own_policies import OwnContender
from league.policies.auto_export import AUTO
from league.policies.exact.exports import open_to_play
from league.policies.frozen import FrozenCopy
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import copies_at, frozen_copies, load_copies
from league.policies.package import is_frozen_folder
from league.policies.policy_store import env_of, spec_hash
from league.policies.trust import admit_trusted, names_of_manifest, require_trusted
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StoredContender:
    """A policy from a folder.

    Fields:
      name, identity, reason, game, copies: as of `Contender`.
      source: the folder.
      opened: policies made so far, by the game's shape, whether they are greedy and how far they search; they hold
        nothing that changes a match.
        Building a network takes longer than some matches.
    """

    name: str
    identity: str
    reason: str
    game: Game
    copies: tuple[FrozenCopy, ...]
    source: Path
    opened: dict[tuple[str, bool, int], Policy] = field(default_factory=dict, compare=False, repr=False)

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        key = spec_hash(game.spec), conditions.greedy, conditions.search
        if key not in self.opened:
            loaded = self._loaded(game, conditions)
            self.opened[key] = loaded.as_seat_policy(greedy=conditions.greedy, search=conditions.search)
        yield self.opened[key]

    def _loaded(self, game: Game, conditions: OpenConditions) -> LoadedPolicy | LoadedMixture:
        is_drawn = len(self.copies) > 1
        return load_copies(
            self.name, self.copies, game.spec, is_drawn=is_drawn, seed=conditions.seed, source=self.source
        )

    def __getstate__(self) -> dict[str, object]:
        """The state for another process: everything but the policies made here."""
        return {**vars(self), "opened": {}}


def find_stored(written: str) -> tuple[StoredContender | OwnContender, ...]:
    """The policy that FOLDER or FOLDER:NAME stands for, or every snapshot in a folder of snapshots.

    Raises:
      LeagueError: no such folder or policy, or a damaged file. EnvError: its game cannot be made.
    """
    folder, name = split_source(written)
    if not folder.exists():
        bot = f"; for the bot of that name write {BOT_PREFIX}{written}" if written.partition(":")[0] in BOTS else ""
        raise UnknownContender(
            f"{written!r} is no contender{bot}: give a folder as RUN:NAME, a snapshot or an exported policy; or "
            "bot:NAME, http://127.0.0.1:PORT, unix:SOCKET, uci:PROGRAM or gtp:PROGRAM."
        )
    inside = [] if name else _snapshots_in(folder)
    if inside:
        return tuple(_of_folder(str(path), path, AUTO) for path in inside)
    return (_of_folder(written, folder, name or AUTO),)


def contender_of_copies(name: str, reason: str, copies: Sequence[FrozenCopy], source: Path) -> StoredContender:
    """A contender from weights on hand. source: where they lie.

    Raises:
      Untrusted: its game is code that this user has not trusted. EnvError: the game cannot be made.
    """
    manifest = copies[0].manifest
    admit_trusted(source, (copy.manifest for copy in copies))
    require_trusted(names_of_manifest(manifest), what=str(source))
    env = env_of(manifest)
    game = plain_game(env, spec_of(replace(env, workers=0)), manifest.kind)
    return StoredContender(name, stored_identity(copies), reason, game, tuple(copies), source)


def stored_identity(copies: Sequence[FrozenCopy]) -> str:
    """The digest of a policy's weights, or a digest over those of a mixture's members and their weights."""
    if len(copies) == 1:
        return copies[0].manifest.digest
    return identity_of("mixture", [[round(copy.weight, 12), copy.manifest.digest] for copy in copies])


def _of_folder(written: str, folder: Path, name: str) -> StoredContender | OwnContender:
    if is_frozen_folder(folder):
        copies = copies_at(folder, name)
        found = contender_of_copies(written, f"the policy in {folder}", copies, folder)
        return (
            _played_by_its_loader(found, [folder / copies[0].manifest.file])
            if copies[0].manifest.is_of_own_trainer
            else found
        )
    run = open_to_play(folder, [name])
    chosen = run.choose(name)
    copies = frozen_copies(run, chosen)
    game = plain_game(run.env, run.spec, run.kind)
    found = StoredContender(written, stored_identity(copies), chosen.reason, game, copies, folder)
    if copies[0].manifest.is_of_own_trainer:
        store = LocalSnapshotStore(RunFolder(folder).snapshots_path)
        return _played_by_its_loader(found, [store.weights_path(copy.manifest.digest) for copy in copies])
    return found


def _played_by_its_loader(found: StoredContender, files: Sequence[Path]) -> OwnContender:
    """The contender that code of the user's makes of the files of a trainer of its own; files: of its copies."""
    loader = found.copies[0].manifest.loader
    if not loader:
        raise UnknownContender(
            f"{found.name} was trained by another program, and nobody says how it is played: give its `league.League` "
            "a loader."
        )
    require_trusted(names_of_manifest(found.copies[0].manifest), what=str(found.source))
    members = tuple((copy.weight, str(file)) for copy, file in zip(found.copies, files, strict=True))
    return OwnContender(found.name, found.identity, found.reason, found.game, loader, members)


def _snapshots_in(folder: Path) -> list[Path]:
    """The snapshots and packages that lie in a folder, one or two levels deep as in a run's `snapshots/`; none for a
    single one."""
    if is_frozen_folder(folder) or not folder.is_dir():
        return []
    found = (path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{MANIFEST}"))
    return sorted(path for path in found if is_frozen_folder(path))

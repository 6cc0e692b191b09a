"""Verifies a package from outside: digests, limits, and that its weights fill the networks that it describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.envs.plugins import is_admitted
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.policies.frozen import FrozenFolder
from league.policies.loading import load_frozen
from league.policies.package import PackageManifest, is_package, read_frozen_folder, read_package, verify_files
from league.policies.policy_store import env_of, fits
from league.policies.trust import names_of_manifest


@dataclass(frozen=True)
class Imported:
    """A package that holds.

    Fields:
      path: of its folder. manifest: what it says. num_bytes: verified.
      parameters: of one member's network. game_note: a sentence on its game here.
    """

    path: Path
    manifest: PackageManifest
    num_bytes: int
    parameters: int
    game_note: str

    def text(self) -> str:
        manifest = self.manifest
        what = f"a mixture of {len(manifest.members)} policies" if manifest.is_drawn else manifest.members[0].name
        memory = f"core state of {manifest.core_state.size}" if manifest.core_state.size else "no memory"
        graphs = ", ".join(graph.file for graph in manifest.graphs) or "none"
        return "\n".join(
            [
                f"{self.path}: {what} of {manifest.game.id}, exported as {manifest.name} by league "
                f"{manifest.league_version}",
                f"  {len(manifest.files) + 2} files, {self.num_bytes:,} bytes beside the manifest, every digest holds",
                f"  {self.parameters:,} parameters, {manifest.outputs.head}, {memory}, graphs: {graphs}",
                f"  {self.game_note}",
            ]
        )

    def to_json(self) -> str:
        """The manifest with what was verified."""
        verified = {"bytes": self.num_bytes, "parameters": self.parameters, "game": self.game_note}
        return msgspec.json.encode({"path": str(self.path), "verified": verified, "manifest": self.manifest}).decode()


def verify_package(path: Path) -> Imported:
    """Read every byte of a package and build its networks; nothing of it is executed.

    Raises:
      CorruptSnapshot: a file is missing or not what was written.
      PolicyMismatch: weights do not fit the network or the game. Untrusted: it needs code of others.
    """
    if not is_package(path):
        raise LeagueError(f"{path} is no package of an exported policy: `league export RUN {path}` makes one.")
    manifest = read_package(path)
    num_bytes = verify_files(path, manifest)
    frozen = read_frozen_folder(path)
    assert frozen.spec is not None
    policy = load_frozen(frozen, frozen.spec)
    parameters = sum(parameter.numel() for parameter in policy.members[0][1].network.parameters())
    return Imported(path, manifest, num_bytes, parameters, _game_note(frozen))


def _game_note(frozen: FrozenFolder) -> str:
    """A sentence on whether the game can be played here.

    Raises:
      PolicyMismatch: a game of this name is another one here.
    """
    manifest = frozen.copies[0].manifest
    if any(found.kind == "env" and not is_admitted(found.entry) for found in names_of_manifest(manifest)):
        return f"its game {manifest.env_id} is code of others and was not loaded: --trust loads it"
    try:
        spec = spec_of(env_of(manifest))
    except EnvError as error:
        return f"its game cannot be made here: {error}"
    if not fits(manifest, spec):
        load_frozen(frozen, spec)  # raises, naming what differs
    return f"its game {manifest.env_id} is here, and it fits"

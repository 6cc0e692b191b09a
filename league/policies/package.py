"""The package of an exported policy: what lies in its folder, and reading it with every byte verified.

    manifest.json       `PackageManifest`             README.md          model card for people
    model.safetensors   weights; model-0.safetensors, model-1.safetensors, ... of a mixture
    SHA256SUMS          digests of all files, as `sha256sum -c` reads them
    trust.json          mark of the user who exported it, see `league.policies.trust`; only where it names code
    code.json           where that code lies from here, see `league.policies.own_code`

Reading runs no code of a package: files are JSON, safetensors and text, each of a bounded size.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network_parts import ENCODERS
from league.envs.component_choice import given_options, kind_of
from league.envs.protocol import ArraySpec
from league.errors import CorruptSnapshot, StorageError
from league.policies.frozen import (
    MANIFEST_FILE,
    MAX_PACKAGE_MANIFEST_BYTES,
    FrozenCopy,
    FrozenFolder,
    read_snapshot_folder,
)
from league.policies.stored_game import StoredGame, StoredSpec
from league.policies.trust import admit_trusted, find_own_code, names_of_manifest
from league.store.run_folder import RunFolder
from league.store.snapshots import MAX_WEIGHTS_BYTES, SnapshotManifest, read_verified, sha256_hex
from league.store.storage import Storage

FORMAT = "league-policy"
SCHEMA_VERSION = 2
READABLE_SCHEMA_VERSIONS = (1, 2)
"""In version 1 a game had no format of its own."""
CARD_FILE, SUMS_FILE = "README.md", "SHA256SUMS"
MAX_SUMS_BYTES = 1 << 18
MAX_MEMBERS = 256
MAX_FIELD_NUMBERS = 1 << 22
"""Numbers in one observation field of a game that a package may describe."""

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]{0,79})")


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One policy of a package.

    Fields:
      name: of the snapshot or player. weight: share of the games that it plays, 1 for a single policy.
      file: of its weights. snapshot: who it is, and its network's configuration.
    """

    name: str
    weight: float
    file: str
    snapshot: SnapshotManifest


class FieldInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The path of an observation field into a network; all of it is part of the network and of exported graphs.

    Fields:
      field: its name; GROUP/FIELD where seat groups observe fields of their own.
      shape, dtype: as the game shows it. cast: type in which the network computes.
      scale: factor of every number.
      moments: mean and deviation of each number of the last axis, to subtract and to divide by; empty for none.
      transform: "symlog" for sign(x) log(1 + |x|), else "none"; comes last.
    """

    field: str
    shape: tuple[int, ...]
    dtype: str
    cast: str = "float32"
    scale: float = 1.0
    moments: tuple[tuple[float, float], ...] = ()
    transform: str = "none"


class CoreState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory of a policy, carried from one decision of a seat to its next in the same episode.

    Fields:
      size: numbers of a row, 0 without memory. dtype, initial: type, and content before the first decision.
    """

    size: int
    dtype: str = "float32"
    initial: str = "zeros"


class Outputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outputs of a network. head: class. dist_params: numbers of a row. meaning: what they are, for people."""

    head: str
    dist_params: int
    meaning: str


class Parity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest difference between a graph and the network that it was made of.

    Fields:
      rows, steps: random legal inputs, and steps of memory over which they were compared.
      max_difference: over all outputs in float32, absolute for numbers up to 1 and relative above.
      tolerance: above it nothing is exported.
    """

    rows: int
    steps: int
    max_difference: float
    tolerance: float


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member as a graph for other programs.

    Fields:
      kind: "onnx", "torch_export", "numpy" or "web". member: its name. file: of the graph.
      inputs, outputs: names in order. version: of the format, such as the opset. parity: with the network.
    """

    kind: str
    member: str
    file: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    version: str
    parity: Parity


class FileFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sha256 (hex) and size in bytes of a file."""

    sha256: str
    bytes: int


class PackageManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describes the package of an exported policy.

    Fields:
      format, schema_version: of this record. league_version: of the program that wrote it.
      name: of the policy, as it was asked for. run: name of its run's folder, empty for a lone snapshot.
      reason: one sentence on why these members. is_drawn: whether a member is drawn for each game.
      game, members: see there. preprocessing: a line for each observation field. core_state, outputs: see there.
      graphs: for other programs. strength: what was measured, as the card shows it.
      files: name -> digest and size of every file but this one and the table of digests.
    """

    format: str
    schema_version: int
    league_version: str
    name: str
    run: str
    reason: str
    is_drawn: bool
    game: StoredGame
    members: tuple[Member, ...]
    preprocessing: tuple[FieldInput, ...]
    core_state: CoreState
    outputs: Outputs
    graphs: tuple[Graph, ...]
    strength: dict[str, Any]
    files: dict[str, FileFacts]


def is_package(path: Path) -> bool:
    """True if the folder is the package of an exported policy."""
    try:
        payload = Storage().read_bytes(path / MANIFEST_FILE, max_bytes=MAX_PACKAGE_MANIFEST_BYTES)
        found = msgspec.json.decode(payload)
    except (OSError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def is_frozen_folder(path: Path) -> bool:
    """True if the folder holds a single snapshot or the package of a policy."""
    return (path / MANIFEST_FILE).is_file()


def read_frozen_folder(path: Path) -> FrozenFolder:
    """The policies of a snapshot's folder or of a package, every byte verified.

    The code that one names is admitted where this user trusts it, exported it, or trained the run in which it lies.

    Raises:
      CorruptSnapshot: a file is missing or not what was written.
    """
    if is_package(path):
        manifest = read_package(path)
        copies = tuple(_copy_of(path, member) for member in manifest.members)
        found = FrozenFolder(path, manifest.name, copies, is_drawn=manifest.is_drawn, spec=manifest.game.spec())
    else:
        found = read_snapshot_folder(path)
    admit_trusted(path, (one.manifest for one in found.copies))
    marked = path if found.spec is not None else Path(os.path.normpath(path.absolute() / "../../.."))
    names = (name for copy in found.copies for name in names_of_manifest(copy.manifest))
    find_own_code(RunFolder(marked), [*names])  # of a snapshot, that of RUN/snapshots/16/DIGEST
    return found


def read_package(folder: Path) -> PackageManifest:
    """The manifest of a package, verified against the table of digests and the limits of a package.

    Raises:
      CorruptSnapshot: it is not what was written, or describes what a package may not hold.
    """
    path = folder / MANIFEST_FILE
    sums = read_sums(folder / SUMS_FILE)
    payload = read_verified(Storage(), path, sums.get(MANIFEST_FILE, ""), max_bytes=MAX_PACKAGE_MANIFEST_BYTES)
    try:
        version = msgspec.json.decode(payload)["schema_version"]
        if version not in READABLE_SCHEMA_VERSIONS:
            readable = " and ".join(map(str, READABLE_SCHEMA_VERSIONS))
            raise CorruptSnapshot(
                path, f"it has schema version {version}, this program reads {readable}; use the version that wrote it"
            )
        manifest = msgspec.json.decode(payload, type=PackageManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise CorruptSnapshot(path, f"it is no manifest of a package ({error})") from error
    try:
        problem = _problem_of(manifest, sums)
    except (msgspec.ValidationError, KeyError) as error:
        raise CorruptSnapshot(path, f"it describes no network or game ({error})") from error
    if problem:
        raise CorruptSnapshot(path, problem)
    return manifest


def verify_files(folder: Path, manifest: PackageManifest) -> int:
    """Read every file of a package against its digest; returns the bytes that were read.

    Raises:
      CorruptSnapshot: one is missing, or not what was written.
    """
    for name, facts in manifest.files.items():
        read_verified(Storage(), folder / name, facts.sha256, max_bytes=facts.bytes)
    return sum(facts.bytes for facts in manifest.files.values())


def sums_text(digests: Mapping[str, str]) -> str:
    """The table of digests, as `sha256sum -c` reads it."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def read_sums(path: Path) -> dict[str, str]:
    """File of a package -> its digest, by the table of digests; every name is one of a file in this folder.

    Raises:
      CorruptSnapshot: it is missing, or no such table.
    """
    try:
        text = Storage().read_bytes(path, max_bytes=MAX_SUMS_BYTES).decode("ascii")
    except (FileNotFoundError, StorageError, UnicodeDecodeError) as error:
        raise CorruptSnapshot(path, "the table of digests is missing or no text") from error
    found = [_SUM_LINE.fullmatch(line) for line in text.splitlines()]
    if not all(found):
        raise CorruptSnapshot(path, "a line of it is no digest with a file's name")
    return {line[2]: line[1] for line in found if line is not None}


def _problem_of(manifest: PackageManifest, sums: Mapping[str, str]) -> str:
    """The first limit that a manifest breaks, empty if none."""
    listed = {name: facts.sha256 for name, facts in manifest.files.items()}
    facts = manifest.game.facts
    if {name: digest for name, digest in sums.items() if name != MANIFEST_FILE} != listed:
        return f"{SUMS_FILE} lists other files or digests"
    if strange := [name for name in listed if not _FILE_NAME.fullmatch(name) or name == MANIFEST_FILE]:
        return f"it names the file {strange[0][:80]!r}"
    if not 1 <= len(manifest.members) <= MAX_MEMBERS:
        return f"it has {len(manifest.members)} members, a package has 1 to {MAX_MEMBERS}"
    if any(not 0 < member.weight < math.inf for member in manifest.members):
        return "the weight of a member is not above 0"
    for member in manifest.members:
        if listed.get(member.file) != member.snapshot.digest:
            return f"the weights of {member.name} are not {member.file}"
    if len(manifest.members) > 1 and not manifest.is_drawn:
        return "it has several members and is no mixture"
    if any(math.prod(array.shape) > MAX_FIELD_NUMBERS or min(array.shape, default=1) < 0 for array in _arrays(facts)):
        return f"an observation field has more than {MAX_FIELD_NUMBERS} numbers"
    if facts.actions.num_actions < 0 or len(facts.teams) != facts.num_seats:
        return "the facts of its game contradict each other"
    for member in manifest.members:
        least, most = min_numbers(facts, member.snapshot.network), manifest.files[member.file].bytes // 4
        if least > most:
            return f"the network of {member.name} has {least:,} numbers or more, and its weights are {most:,}"
    try:
        manifest.game.spec()
    except ValueError as error:
        return str(error)
    return ""


def min_numbers(facts: StoredSpec, network: Mapping[str, object]) -> int:
    """A lower bound of the numbers in the weights of a network, found without making it.

    A description alone could ask for more memory than there is.

    Raises:
      msgspec.ValidationError: it is no description of a network.
    """
    config, actions = msgspec.convert(network, NetworkConfig), facts.actions
    bounds = [actions.num_actions, sum(actions.nvec), math.prod(actions.shape), config.core_layers, config.core_context]
    encoder, core = kind_of(config.encoder), kind_of(config.core)
    if encoder in ENCODERS:
        bounds += [one * other for one, other in pairwise(config.hidden)]
    if encoder == "mlp":
        inputs = sum(math.prod(facts.observations[name].shape) for name in facts.observations)
        seen = inputs - sum(math.prod(facts.observations[name].shape) for name in facts.value_fields)
        bounds.append(seen * config.hidden[0] if config.hidden and not facts.seat_groups else 0)
    if encoder in ("conv", "impala_resnet"):
        bounds += [9 * one * other for one, other in pairwise(config.channels)]
    if encoder in ("dict", "entities"):
        bounds += [config.entity_size**2, config.entity_layers]
    if core in ("lstm", "transformer"):
        bounds.append(config.core_size**2)
    if core == "stack":
        bounds.append(msgspec.convert(given_options(config.core).get("steps", 1), int))
    if kind_of(config.head) == "autoregressive":
        bounds += [config.head_size**2, config.head_size * config.pointer_size if any(actions.points_at) else 0]
    return max(bounds)


def _arrays(facts: StoredSpec) -> list[ArraySpec]:
    return [
        *facts.observations.values(),
        *(field for group in facts.seat_groups for field in group.observations.values()),
    ]


def _copy_of(folder: Path, member: Member) -> FrozenCopy:
    weights = read_verified(Storage(), folder / member.file, member.snapshot.digest, max_bytes=MAX_WEIGHTS_BYTES)
    return FrozenCopy(member.name, member.weight, weights, member.snapshot)


def digest_of(payload: bytes) -> FileFacts:
    """Digest and size of a file's content."""
    return FileFacts(sha256_hex(payload), len(payload))

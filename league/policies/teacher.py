"""The teacher of a run: a frozen policy from outside that learners are held to, kept in the run's own store.

The run's configuration notes its weights by their digest, and a copy lies among the run's snapshots. So a resumed run
needs no other folder.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from league.agents.nets.network import build_network
from league.agents.weights import Weights, WeightsError, from_named, layout_of
from league.config.run_config import RunConfig, TeacherConfig
from league.envs.protocol import EnvSpec
from league.errors import LeagueError, MissingRun, MissingSnapshot
from league.policies.loading import copies_at, find_source
from league.policies.policy_store import fits, network_plain, spec_hash
from league.store.snapshots import MAX_WEIGHTS_BYTES, SnapshotManifest, SnapshotStore, sha256_hex
from league.store.storage import Storage
from league.store.weights_file import stored_arrays


def find_teacher(config: RunConfig, spec: EnvSpec, *, folder: Path) -> RunConfig:
    """The configuration as it is noted in a new run: with the teacher's digest, and its source from the root.

    Args:
      spec: of the run's game.
      folder: of the configuration's file, where a source is looked for that is not found from the current folder.
    Raises:
      LeagueError: there is no such teacher, it is damaged, or it does not fit the run; one sentence. EnvError: the
        game of its run cannot be made.
    """
    if not config.teacher.source:
        return config
    source = _source_of(config.teacher, folder)
    settings = dataclasses.replace(config.teacher, source=str(source))
    weights, manifest = _read(settings, config, spec)
    _fitting(weights, manifest, settings, config, spec)
    if settings.digest not in ("", manifest.digest):
        raise LeagueError(_another(settings, manifest))
    return dataclasses.replace(config, teacher=dataclasses.replace(settings, digest=manifest.digest))


def teacher_weights(config: RunConfig, spec: EnvSpec, *, store: SnapshotStore) -> Weights | None:
    """The teacher of a run, from its store; taken there from its source the first time. None where there is none.

    Raises:
      LeagueError: neither the store nor the source has these weights, or they do not fit the run.
    """
    settings = config.teacher
    if not settings.source:
        return None
    try:
        weights, manifest = store.get(settings.digest)
    except MissingSnapshot:  # the run ended before it was stored, or its teacher is newer than its start
        weights, manifest = _read(settings, config, spec)
        if settings.digest not in ("", manifest.digest):
            raise LeagueError(_another(settings, manifest)) from None
        store.put(weights, manifest)
    return _fitting(weights, manifest, settings, config, spec)


def _source_of(settings: TeacherConfig, folder: Path) -> Path:
    path = find_source(settings.source, folder=folder)
    if path is not None:
        return path
    raise MissingRun(
        f"The teacher's source {settings.source!r} does not exist here or beside the configuration: give a run folder"
        " (runs/NAME), the folder of a snapshot, or a .safetensors file of weights."
    )


def _read(settings: TeacherConfig, config: RunConfig, spec: EnvSpec) -> tuple[bytes, SnapshotManifest]:
    """The weights file and what it is."""
    source = Path(settings.source)
    if source.is_file():
        return _read_file(source, config, spec)
    copies = copies_at(source, settings.player)
    if len(copies) != 1:
        raise LeagueError(
            f"The teacher {settings.player} of {source} is a mixture of {len(copies)} policies; a teacher is one: give"
            " the id of a snapshot as teacher.player."
        )
    return copies[0].weights, copies[0].manifest


def _read_file(path: Path, config: RunConfig, spec: EnvSpec) -> tuple[bytes, SnapshotManifest]:
    """Bare weights by parameter name, taken to be of this run's network."""
    weights = Storage().read_bytes(path, max_bytes=MAX_WEIGHTS_BYTES)
    manifest = SnapshotManifest(
        digest=sha256_hex(weights),
        player="",
        role="",
        parent=None,
        version=0,
        trained_steps=0,
        env_id=config.env.id,
        env_spec_hash=spec_hash(spec),
        env=dict(config.env.kwargs),
        network=network_plain(config.network),
    )
    return weights, manifest


def _fitting(
    weights: bytes, manifest: SnapshotManifest, settings: TeacherConfig, config: RunConfig, spec: EnvSpec
) -> Weights:
    """The weights, of this run's game and network.

    Raises:
      CorruptSnapshot: the bytes are no weights. LeagueError: they are of another game or network.
    """
    if not fits(manifest, spec):
        raise LeagueError(
            f"The teacher from {settings.source} was trained on {manifest.env_id} and cannot judge {spec.env_id}:"
            " seats, observations, actions or the mask differ. Choose a policy of the same game."
        )
    try:
        layout = layout_of(build_network(spec, config.network, seed=0))
        return from_named(stored_arrays(weights, source=Path(settings.source)), layout, version=manifest.version)
    except WeightsError as error:
        raise LeagueError(
            f"The teacher from {settings.source} does not fit the network of this run: {error}. A teacher has the same"
            " network as its pupil: take over the `network` section of its run."
        ) from error


def _another(settings: TeacherConfig, manifest: SnapshotManifest) -> str:
    return (
        f"The teacher of this run has the weights {settings.digest[:12]}, but {settings.source} now holds"
        f" {manifest.digest[:12]}: put the old ones back, or start a new run without teacher.digest."
    )

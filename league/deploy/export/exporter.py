"""Exports a policy of a run, or a lone snapshot, as a package: a folder that needs nothing of the run."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from torch import nn

from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.autoregressive import AutoregressiveHead
from league.agents.nets.heads import CategoricalHead, GaussianHead
from league.agents.nets.image_encoders import PictureInput
from league.agents.nets.input_scaling import FieldScaling
from league.agents.nets.network import Network
from league.agents.nets.seat_groups import SeatGroupNetworks, own_spec
from league.agents.nets.sub_actions import MultiCategoricalHead
from league.agents.nets.tanh_gaussian import TanhGaussianHead
from league.config.plugin_names import with_present_places
from league.deploy.export.graphs import make_graphs
from league.deploy.export.inputs import random_inputs
from league.deploy.export.model_card import model_card
from league.deploy.export.smoke_test import try_on_game
from league.deploy.export.strength import Strength, strength_of
from league.envs.protocol import EnvSpec, field_label
from league.envs.seat_plan import SeatPlan
from league.errors import LeagueError
from league.judge.matches.evaluation import EvalReport, Progress, evaluate_run
from league.judge.matches.export_match import ASK_S, keep_export_matches
from league.policies.auto_export import AUTO
from league.policies.exact.exports import ExportSearch, open_to_play
from league.policies.frozen import MANIFEST_FILE, FrozenCopy
from league.policies.loaded_policy import LoadedPolicy
from league.policies.loading import OpenRun, build_policy, frozen_copies, open_frozen
from league.policies.own_code import note_code
from league.policies.package import (
    CARD_FILE,
    FORMAT,
    SCHEMA_VERSION,
    SUMS_FILE,
    CoreState,
    FieldInput,
    FileFacts,
    Graph,
    Member,
    Outputs,
    PackageManifest,
    digest_of,
    is_frozen_folder,
    sums_text,
)
from league.policies.select import Selection
from league.policies.stored_game import game_record
from league.policies.trust import mark, names_of_manifest
from league.stages import begin_stage
from league.store.run_folder import RunFolder
from league.store.snapshots import SnapshotManifest
from league.store.storage import Storage, temporary_path
from league.version import __version__


@dataclass(frozen=True)
class Exported:
    """A package that was written. path: its folder. manifest: what it says. notes: sentences for the user."""

    path: Path
    manifest: PackageManifest
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        count = len(self.manifest.members)
        what = f"a mixture of {count} policies" if self.manifest.is_drawn else self.manifest.members[0].name
        size = sum(facts.bytes for facts in self.manifest.files.values())
        lines = [
            f"{self.path}: {what} of {self.manifest.game.id}, {len(self.manifest.files) + 2} files, {size:,} bytes"
        ]
        lines += [
            f"  {graph.file}: within {graph.parity.max_difference:.2g} of the network" for graph in self.manifest.graphs
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True)
class Chosen:
    """The policies to export.

    Fields:
      run: where they come from. copies: with their weights. selection: None for a lone snapshot or a package.
      name, reason: why these. is_drawn: whether they are a mixture.
    """

    run: OpenRun
    copies: tuple[FrozenCopy, ...]
    selection: Selection | None
    name: str
    reason: str
    is_drawn: bool


def export_policy(
    source: Path,
    target: Path,
    *,
    player: str = AUTO,
    graphs: Sequence[str] = (),
    games: int = 0,
    bots: Sequence[str] = (),
    seed: int = 0,
    limit_s: float = 60.0,
    storage: Storage | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write the package of a policy; it is there whole or not at all.

    Args:
      source: run folder (also of a live run), folder of a snapshot, or a package.
      target: folder to make; it must not exist.
      player: name as in `load_policy`.
      graphs: kinds of graphs to write beside the weights, see `league.deploy.export.graphs`.
      games: against each bot, for the card; 0 plays none. bots: names as in `make_bot`. seed: of these games.
      limit_s: longest time for these games.
    Raises:
      LeagueError: no such policy, a damaged file, the target exists, a graph differs from its network, or the policy
        cannot be played with what its game shows.
      EnvError: the game cannot be made here.
    """
    if target.exists():
        raise LeagueError(f"{target} is there already: choose another folder, or remove it first.")
    begin_stage(f"loading {player} of {source}")
    chosen = choose_export(source, player)
    policies = _policies(chosen)
    if games:
        begin_stage(f"playing against {', '.join(bots)} for the card", seconds=limit_s)
    played = _games(source, chosen, games=games, bots=bots, seed=seed, limit_s=limit_s, progress=progress)
    strength = strength_of(
        chosen.run.state,
        chosen.selection,
        members=[one.name for one in chosen.copies],
        trained_steps=max(one.manifest.trained_steps for one in chosen.copies),
        exact=chosen.run.exact,
        played=played,
        is_competitive=chosen.run.spec.num_teams > 1,
    )
    begin_stage(f"writing {target}")
    files = {name: one.weights for name, one in zip(weight_files(len(policies)), chosen.copies, strict=True)}
    made = _graphs(chosen, policies, graphs)
    files |= {graph.file: payload for graph, payload in made}
    manifest = _manifest(chosen, policies, strength, files, tuple(graph for graph, _ in made))
    try_on_game(manifest, policies, chosen.run.env)
    notes = _write(target, manifest, strength, files, storage=storage or Storage())
    return Exported(target, manifest, tuple(notes))


def choose_export(source: Path, player: str) -> Chosen:
    """The policies that a name stands for in a run, a snapshot's folder or a package. Raises as `export_policy`."""
    if is_frozen_folder(source):
        run, frozen = open_frozen(source)
        frozen.require(player)
        return Chosen(run, frozen.copies, None, frozen.name, "all that its folder held", frozen.is_drawn)
    run = open_to_play(source, [player], search=ExportSearch())
    if player == AUTO:
        run = keep_export_matches(run, limit_s=ASK_S)
    selection = run.choose(player)
    copies = frozen_copies(run, selection)
    return Chosen(run, copies, selection, player, selection.reason, selection.is_drawn)


def weight_files(members: int) -> tuple[str, ...]:
    """Names of the files of weights."""
    if members == 1:
        return ("model.safetensors",)
    return tuple(f"model-{number}.safetensors" for number in range(members))


def _policies(chosen: Chosen) -> tuple[LoadedPolicy, ...]:
    """Every member as it will be read again, so that nothing is exported that cannot be imported."""
    return tuple(
        build_policy(one.name, one.weights, one.manifest, chosen.run.spec, source=chosen.run.path)
        for one in chosen.copies
    )


def _graphs(chosen: Chosen, policies: Sequence[LoadedPolicy], kinds: Sequence[str]) -> list[tuple[Graph, bytes]]:
    """Every member as a graph of every kind, with its file's content."""
    made: list[tuple[Graph, bytes]] = []
    for policy, file in zip(policies, weight_files(len(policies)), strict=True):
        if kinds:
            made += make_graphs(kinds, policy.network, chosen.run.spec, member=policy.name, stem=Path(file).stem)
    return made


def _games(
    source: Path,
    chosen: Chosen,
    *,
    games: int,
    bots: Sequence[str],
    seed: int,
    limit_s: float,
    progress: Progress | None,
) -> EvalReport | None:
    """Matches against bots, or games alone where nobody is an opponent; None where none are asked for."""
    if not games or not bots:
        return None
    return evaluate_run(
        source, players=(chosen.name,), bots=bots, games=games, seed=seed, limit_s=limit_s, progress=progress
    )


def _manifest(
    chosen: Chosen,
    policies: Sequence[LoadedPolicy],
    strength: Strength,
    files: dict[str, bytes],
    graphs: tuple[Graph, ...],
) -> PackageManifest:
    spec, network = chosen.run.spec, policies[0].network
    names = weight_files(len(policies))
    members = tuple(
        Member(one.name, one.weight, name, _snapshot_of(one.manifest, chosen.run))
        for one, name in zip(chosen.copies, names, strict=True)
    )
    manifest = PackageManifest(
        format=FORMAT,
        schema_version=SCHEMA_VERSION,
        league_version=__version__,
        name=chosen.name,
        run=chosen.run.path.name if chosen.selection is not None else "",
        reason=chosen.reason,
        is_drawn=chosen.is_drawn,
        game=game_record(dataclasses.replace(chosen.run.env, id=members[0].snapshot.env_id), spec),
        members=members,
        preprocessing=preprocessing_of(network, spec),
        core_state=core_state_of(network),
        outputs=outputs_of(network, _num_dist_params(network, spec)),
        graphs=graphs,
        strength=strength.plain(),
        files={name: digest_of(payload) for name, payload in files.items()},
    )
    card = model_card(manifest, strength).encode()
    return msgspec.structs.replace(manifest, files={**manifest.files, CARD_FILE: digest_of(card)})


def _snapshot_of(manifest: SnapshotManifest, run: OpenRun) -> SnapshotManifest:
    """The manifest of a member: its seats and kind as the run has them, and its code where that lies now."""
    network: dict[str, object] = copy.deepcopy(manifest.network)
    game = {"id": manifest.env_id}
    with_present_places({"env": game, "network": network})
    plan = SeatPlan.of(run.env).plain()
    return dataclasses.replace(manifest, env_id=game["id"], network=network, seat_plan=plan, kind=run.kind)


@torch.inference_mode()
def _num_dist_params(network: Network, spec: EnvSpec) -> int:
    ((obs, mask),) = random_inputs(spec, rows=1, steps=1, seed=0)
    return int(network.step(obs, action_mask=mask).logits.shape[-1])


def _write(
    target: Path, manifest: PackageManifest, strength: Strength, files: dict[str, bytes], *, storage: Storage
) -> list[str]:
    """All files into a temporary folder, durably, which then takes its name; returns sentences for the user."""
    payload = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    without_card = msgspec.structs.replace(
        manifest, files={name: facts for name, facts in manifest.files.items() if name != CARD_FILE}
    )
    texts = {CARD_FILE: model_card(without_card, strength).encode(), MANIFEST_FILE: payload}
    digests: dict[str, FileFacts] = {**manifest.files, MANIFEST_FILE: digest_of(payload)}
    texts[SUMS_FILE] = sums_text({name: facts.sha256 for name, facts in digests.items()}).encode()
    final = target.absolute()
    temporary = temporary_path(final)
    storage.make_folder(final.parent)
    storage.remove_folder(temporary)
    storage.make_folder(temporary)
    try:
        for name, content in {**files, **texts}.items():
            storage.atomic_write_bytes(temporary / name, content)
        own = [name for member in manifest.members for name in names_of_manifest(member.snapshot)]
        note_code(RunFolder(temporary, storage=storage), own)
        notes = mark(RunFolder(temporary, storage=storage), own)
        storage.publish_folder(temporary, final)
    except LeagueError:
        storage.remove_folder(temporary)
        raise
    return notes


MEANINGS: dict[type, str] = {
    AutoregressiveHead: "inputs of the head's own layers, which choose the sub-actions one by one: context, keys and "
    "flags of each set of entities, then the mask; the layers are in the weights as parts.heads.head.*",
    DeterministicHead: "means within the bounds, then log standard deviations of normals; the policy takes the means; "
    "the critics are in the weights as parts.heads.head.critics.*",
    TanhGaussianHead: "means, then log standard deviations of normals; an action is low + (high - low) * "
    "(tanh(sample) + 1) / 2",
    GaussianHead: "means, then log standard deviations of independent normals; an action is a sample, clipped to the "
    "bounds of the box",
    MultiCategoricalHead: "logits of the sub-actions in the order of the action mask; illegal ones -1e9; each "
    "sub-action is drawn from the softmax of its row, given the earlier choice that its mask depends on",
    QValuesHead: "advantages of the actions, to which the value is added where the head is dueling; illegal ones -1e9; "
    "the policy takes the largest, or with a small probability a random legal one",
    CategoricalHead: "logits of the actions; illegal ones -1e9; the softmax is the policy",
}
"""Class of a head -> the meaning of its dist_params; subclasses first."""


def preprocessing_of(network: Network, spec: EnvSpec) -> tuple[FieldInput, ...]:
    """A line for each field that a policy reads, as the network's own modules treat it; for each seat group its own."""
    if not spec.seat_groups:
        return tuple(_field_inputs(network, spec, group=""))
    inside = network.blocks[0].module
    assert isinstance(inside, SeatGroupNetworks)
    pairs = zip(spec.seat_groups, inside.networks.values(), strict=True)
    return tuple(line for group, own in pairs for line in _field_inputs(own, own_spec(spec, group), group=group.name))


def _field_inputs(network: nn.Module, spec: EnvSpec, *, group: str) -> Iterator[FieldInput]:
    scales: dict[str, float] = {}
    scalings: dict[str, FieldScaling] = {}
    for module in network.modules():
        if isinstance(module, PictureInput):
            scales.update(module.pictures)
        elif isinstance(module, FieldScaling):
            scalings[module.name] = module
    for name, field in spec.observations.items():
        if name in spec.value_fields:
            continue
        scaling = scalings.get(name)
        yield FieldInput(
            field_label(name, group=group),
            field.shape,
            field.dtype,
            scale=scales.get(name, 1.0),
            moments=() if scaling is None else scaling.moments,
            transform="symlog" if scaling is not None and scaling.is_squashed else "none",
        )


def core_state_of(network: Network) -> CoreState:
    """The memory of the network."""
    return CoreState(network.core_size)


def outputs_of(network: Network, dist_params: int) -> Outputs:
    """The outputs of the network, `dist_params` numbers among them."""
    head = type(network.head)
    meaning = next((text for known, text in MEANINGS.items() if issubclass(head, known)), "of a head of one's own")
    return Outputs(head.__name__, dist_params, meaning)

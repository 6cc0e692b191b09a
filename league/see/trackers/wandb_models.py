"""Snapshots as model artifacts at wandb, with their lineage and aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from league.core.metagame.ratings import RatingRow
from league.core.state.state import LeagueState
from league.policies.auto_export import BEST
from league.policies.select import UnknownPolicy, choose
from league.see.trackers.best_snapshot import FILES
from league.see.trackers.identity import player_id
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_runs import WandbRuns
from league.store.snapshots import LocalSnapshotStore


def wanted_aliases(state: LeagueState, kept: str) -> dict[str, list[str]]:
    """Snapshot -> its aliases, of those that are to be at the tracker and whose weights are there.

    Args:
      kept: "none"; "best" for the best and the tagged ones; "all".
    """
    if kept == "none":
        return {}
    aliases: dict[str, list[str]] = {name: [] for name in state.snapshots} if kept == "all" else {}
    for tag, name in sorted(state.tags.items()):
        aliases.setdefault(name, []).append(tag)
    try:
        best = choose(state, BEST)
    except UnknownPolicy:
        best = None
    for _, snapshot in () if best is None else best.members:
        aliases.setdefault(snapshot.snapshot_id, []).append(BEST)
    return {name: found for name, found in aliases.items() if state.is_present(name)}


def models_to_send(state: LeagueState, told: Mapping[str, list[str]], kept: str) -> list[tuple[str, list[str]]]:
    """(snapshot, aliases) of those that are new or have new aliases, oldest first.

    wandb gives the alias `latest` to what is logged last, so that a player's newest one is logged again after an older.
    """
    wanted = wanted_aliases(state, kept)
    order = [name for name in state.snapshots if name in wanted]
    newest = {state.snapshots[name].player: name for name in order}
    changed = [name for name in order if told.get(name) != wanted[name]]
    older = {state.snapshots[name].player for name in changed}
    again = [newest[player] for player in older if newest[player] not in changed]
    return [(name, wanted[name]) for name in (*changed, *sorted(again))]


class WandbModels:
    """Logs artifacts of type `model`, one collection for each player. Weights are linked, never copied."""

    def __init__(
        self, wandb: Any, runs: WandbRuns, job: WandbJob, store: LocalSnapshotStore, *, say: Callable[[str, str], None]
    ) -> None:
        self._wandb = wandb
        self._runs = runs
        self._job = job
        self._store = store
        self._say = say

    def send(self, state: LeagueState, ratings: Iterable[RatingRow], told: dict[str, list[str]]) -> None:
        """Log the snapshots that are new or have new aliases. told: snapshot -> aliases; brought up to date."""
        rated = {row.policy: row for row in ratings if row.games}
        for name, aliases in models_to_send(state, told, self._job.settings.models):
            self._log(state, name, aliases, rated.get(name), is_parent_there=state.snapshots[name].parent in told)
            told[name] = aliases
            if BEST in aliases:  # wandb has moved it here
                for other in (other for other in told.values() if other is not aliases):
                    other[:] = [alias for alias in other if alias != BEST]

    def _log(
        self, state: LeagueState, name: str, aliases: list[str], rating: RatingRow | None, *, is_parent_there: bool
    ) -> None:
        known = state.snapshots[name]
        numbers = {} if rating is None else {"elo": rating.elo, "elo_low": rating.low, "elo_high": rating.high}
        artifact = self._wandb.Artifact(
            self._collection(known.player or "imported"),
            type="model",
            metadata={
                "snapshot": name,
                "parent": known.parent,
                "player": known.player,
                "role": known.role,
                "reason": known.reason,
                "version": known.version,
                "trained_steps": known.trained_steps,
                "sha256": known.digest,
                **numbers,
            },
        )
        folder = self._store.folder(known.digest)
        if not all((folder / file).is_file() for file in FILES):
            return  # retired meanwhile
        for file in FILES:
            artifact.add_file(str(folder / file), name=file, policy="immutable")
        run = self._runs.of_player(known.player) or self._runs.league
        if is_parent_there and known.parent is not None and self._runs.is_online:
            self._use(run, state.snapshots[known.parent].player, known.parent)
        run.log_artifact(artifact, aliases=[version_of(name), *aliases])

    def _use(self, run: Any, player: str, parent: str) -> None:
        """Note the parent as an input of the run; offline, where wandb cannot, only the metadata tells of it."""
        try:
            run.use_artifact(f"{self._collection(player)}:{version_of(parent)}")
        except Exception as error:  # process boundary: lineage is not worth losing the rest
            self._say("note", f"the lineage of a model could not be noted ({type(error).__name__})")

    def _collection(self, player: str) -> str:
        return player_id(self._job.run_id, player)


def version_of(snapshot: str) -> str:
    """The alias that a snapshot always has: `s7` of `main-0-s7`."""
    return snapshot.rpartition("-")[2]

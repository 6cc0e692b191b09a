"""Exact exploitability of a run's exports, computed once for whoever has time, and kept beside the journal.

The file holds nothing that could not be computed again. Each value counts as long as its export stands for the same
policies, so that a run may train on meanwhile. A search that found nothing is remembered with the time that it had.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from league.core.metagame.meta_game import own_snapshots
from league.errors import CorruptSnapshot, MissingSnapshot
from league.policies.auto_export import AUTO, EXACT, EXPORTS, ExactExports
from league.policies.exact.behaviours import Array, Mixture, PolicyFunction, members_of
from league.policies.exact.least_exploitable import least_exploitable
from league.policies.exact.phantom_game import PhantomGame
from league.policies.exact.small_game import NoExactValue, SmallGame, small_game
from league.policies.exact.team_game import TeamGame, team_game
from league.policies.exact_file import candidates, made_of, write_exact
from league.policies.frozen import FrozenCopy
from league.policies.loading import OpenRun, copies_at, frozen_copies, load_selection, open_run
from league.policies.package import is_frozen_folder
from league.policies.select import AND, TIMES, UnknownPolicy

ASK_S = 60.0
"""Seconds that the search has where nothing else is said."""

VISIT_FRACTION = 0.7
"""Part of the time for the visit of a game by copies."""

MAX_MEMBERS = 64
"""Most snapshots that the least exploitable mixture is sought among, evenly spaced; their plans are held in memory."""

ExactGame = SmallGame | PhantomGame | TeamGame

SAY_S = 5.0
"""Seconds between two sentences on the progress of a visit."""


def to_stderr(sentence: str) -> None:
    """Say a sentence to whoever waits at a terminal."""
    print(sentence, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class ExportSearch:
    """The limits of a search, and where its progress is reported.

    Fields:
      limit_s: seconds, about. is_insisted: whether to try again what found no time or no value with this limit before.
      clock: monotonic, in seconds. say: takes sentences while it lasts.
    """

    limit_s: float = ASK_S
    is_insisted: bool = False
    clock: Callable[[], float] = field(default=time.monotonic)
    say: Callable[[str], None] = field(default=to_stderr)


def open_to_play(path: Path, players: Sequence[str], *, search: ExportSearch | None = None) -> OpenRun:
    """As `open_run`, with the exact values of the exports where one of `players` asks for them.

    Args:
      search: for "auto"; None takes what is known, so that nobody waits. For "exact", by name, there is always one.
    Raises:
      LeagueError, EnvError: as of `open_run`.
    """
    run = open_run(path)
    asked = {part.partition(TIMES)[0].strip() for player in players for part in player.split(AND)}
    if EXACT not in asked and (AUTO not in asked or search is None):
        return run
    return with_exact(run, replace(search or ExportSearch(), is_insisted=EXACT in asked))


def copies_to_play(source: Path, player: str) -> tuple[FrozenCopy, ...]:
    """As `copies_at`, with the exact values of the exports where `player` asks for them by name. Raises as that."""
    if is_frozen_folder(source):
        return copies_at(source, player)
    run = open_to_play(source, [player])
    return frozen_copies(run, run.choose(player))


def with_exact(run: OpenRun, search: ExportSearch) -> OpenRun:
    """A run with the exact values of its exports as they are now; those that were not known are stored in its folder.

    The cheapest exports come first; none is begun that would end after the limit if it took as long as the last one.
    What was tried is tried again only by name, or with more time after the policies have changed.

    Returns:
      the same run where strength decides and nobody asks for such a value, or all that can be known is.
    Raises:
      LeagueError, EnvError: a policy does not fit its game, or that cannot be made.
    """
    state = run.state
    by_strength = state.kind.is_won_by_strength and (state.kind.information == "open" or not search.is_insisted)
    if not state.is_competitive or by_strength or not own_snapshots(state):
        return run
    now, known = made_of(state), run.exact or ExactExports({})
    missing = [name for name in EXPORTS if name in now and name not in known.values]
    is_tried = bool(known.refusal) or all(name in known.made_of for name in missing)
    is_done = is_tried and (known.is_current or known.limit_s >= search.limit_s)
    if not missing or (is_done and not search.is_insisted):
        return run
    exact = replace(_search(run, missing, known, search), made_of=now, limit_s=search.limit_s)
    write_exact(run.path, exact)
    return replace(run, exact=exact)


def _search(run: OpenRun, missing: Sequence[str], known: ExactExports, search: ExportSearch) -> ExactExports:
    """The known values with those of the missing exports, as far as there is time."""
    begun = search.clock()
    search.say(
        f"Looking for the least exploitable export of {run.path.name} by exact best responses, "
        f"{search.limit_s:.0f} s at most."
    )
    try:
        game = team_game(run.env) or small_game(
            run.env, limit_s=VISIT_FRACTION * search.limit_s, progress=_progress(search)
        )
    except NoExactValue as error:
        search.say(f"{error} The export is chosen without it.")
        return replace(known, refusal=str(error), is_current=True)
    before = search.clock()
    values, mixture = dict(known.values), dict(known.mixture)
    for name in missing:
        if search.clock() - begun + (search.clock() - before) > search.limit_s:
            break
        before = search.clock()
        try:
            if name == EXACT:
                mixture, values[name] = _least_exploitable(
                    run, game, go_on=lambda: search.clock() - begun < search.limit_s
                )
            else:
                values[name] = _value(game, members_of(load_selection(run, run.choose(name))), name, search)
        except (UnknownPolicy, MissingSnapshot, CorruptSnapshot):
            continue
    return ExactExports(values, mixture=mixture, deals=game.deals, matches=known.matches)


def _value(game: ExactGame, policy: Mixture, name: str, search: ExportSearch) -> float:
    """The NashConv of an export; a long computation says how far it is."""
    if not isinstance(game, PhantomGame):
        return game.nash_conv(policy)
    begun = said = search.clock()

    def share(done: float) -> None:
        nonlocal said
        if search.clock() >= said + SAY_S:
            said = search.clock()
            left_s = (said - begun) * (1.0 - done) / max(done, 1e-9)
            search.say(f"  {name}: {said - begun:.0f} s, {done:.0%} done, about {left_s:.0f} s left")

    return game.nash_conv(policy, share)


def _progress(search: ExportSearch) -> Callable[[int, int], None]:
    begun = said = search.clock()

    def progress(deals: int, histories: int) -> None:
        nonlocal said
        if search.clock() >= said + SAY_S:
            said = search.clock()
            left_s = max(VISIT_FRACTION * search.limit_s - (said - begun), 0.0)
            search.say(
                f"  {said - begun:.0f} s: {histories:,} histories and {deals} draws of chance visited, at most "
                f"{left_s:.0f} s left"
            )

    return progress


def _least_exploitable(run: OpenRun, game: ExactGame, *, go_on: Callable[[], bool]) -> tuple[dict[str, float], float]:
    """Snapshot -> weight of the mixture, and its NashConv.

    Raises:
      UnknownPolicy: no trained snapshot has its weights, or plans of this game are too large to be mixed.
    """
    if isinstance(game, PhantomGame) and not game.has_plans:
        raise UnknownPolicy("plans of this game are too large to be mixed")
    policies: dict[str, PolicyFunction] = {}
    trained = candidates(run.state)
    places = np.linspace(0, len(trained) - 1, min(len(trained), MAX_MEMBERS)).round().astype(int).tolist()
    for name in [trained[place] for place in places]:
        try:
            ((_, policies[name]),) = members_of(load_selection(run, run.choose(name)))
        except (MissingSnapshot, CorruptSnapshot):
            continue
    if not policies:
        raise UnknownPolicy("no trained snapshot has its weights")
    plans: dict[str, Array] = {}
    for name in reversed(policies):  # a large game may have no time for the earliest
        if not plans or go_on():
            plans[name] = game.plans([policies[name]])
    mixed = [name for name in policies if name in plans]
    found = least_exploitable(game.form, np.concatenate([plans[name] for name in mixed]), go_on=go_on)
    weights = zip(mixed, found.weights.tolist(), strict=True)
    return {name: weight for name, weight in weights if weight > 0.0}, found.nash_conv

"""Checks of a running league for common faults; each names its finding, its evidence and the setting to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from league.core import diagnosis, scouting
from league.core.gates.gates import beaten_at
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.cycles import league_cycles
from league.core.metagame.meta_game import exported_snapshots
from league.core.metagame.probe_series import Point, series_of
from league.core.metagame.ratings import ELO_PER_LOGIT, frozen_pairs, league_ratings, win_probability
from league.core.metagame.stagnation import LEARNT_REPLY, find_stagnation, saturated
from league.core.state.events import Evidence
from league.core.state.payoff import LOSS, WIN
from league.core.state.state import LeagueState, PlayerState
from league.envs.component_choice import given_options
from league.envs.text.number_text import number_text
from league.see.reports.doctor_history import RunFinding, RunHistory
from league.wording import counted, seat_text

MIN_GAMES = 200
"""Least number of games for which a fraction of them means anything."""
WORST_PAST = 0.4
"""Score below which, with its whole interval, an earlier snapshot or a fresh player beats the newest one."""
MIN_EXPORTED = 8
"""Snapshots below which a mixture is hardly more than one of them. On a one-shot game of nine choices `mixture` was as
exploitable as the last snapshot with 2 to 3 of a main agent. With 10 to 20 it was less than half as exploitable."""


def starved_pairs(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Opponents of a gate about which too little is known."""
    for starved in diagnosis.starved_gates(state):
        opponent, games = min(starved.hungry, key=lambda row: row[1])
        fewest = beaten_at(state.config_of(starved.player.name).gate).min_games
        yield RunFinding(
            "starved pairs",
            f"{starved.player.name} has met {len(starved.hungry)} of its {starved.opponents} opponents too rarely "
            "for its gate to judge.",
            f"least known is {opponent} with {games:.1f} effective games; min_games is {fewest:g}",
            f"raise payoff.half_life_steps (now {number_text(state.payoff.half_life_steps, 6)}) or "
            f"opponents_per_lease, or lower gate.test.min_games",
        )


def silent_gates(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Players whose snapshots were all taken by the timeout although they have opponents to beat."""
    for silent in diagnosis.silent_gates(state):
        name, timeouts = silent.player.name, silent.timeouts
        evidence = history.held.get(name, ())
        if not evidence:
            continue
        hardest, gate = evidence[0], state.config_of(name).gate
        p_value = "" if hardest.unbeaten is None else f"; the p-value of its being unbeaten was {hardest.unbeaten:.2f}"
        bar = beaten_at(gate).win_rate
        kind = "use gate.test: posterior, " if gate.test_name == "threshold" and len(evidence) > 3 else ""
        yield RunFinding(
            "gates that never fire",
            f"The gate of {name} has never fired: all {timeouts} snapshots were taken by the timeout.",
            f"at the last one {hardest.opponent} was beaten with {hardest.mean:.2f} in {hardest.games:.0f} effective "
            f"games, win_rate is {bar:g}{p_value}",
            f"{kind}lower gate.test.win_rate{_as_margin(state, bar)}, or raise gate.timeout_steps "
            f"(now {gate.timeout_steps:,})",
        )


def _as_margin(state: LeagueState, win_rate: float) -> str:
    """A win rate as a margin for games counted by returns, where a fraction of games says little."""
    if state.scoring.score == "wins":
        return ""
    scale = state.scoring.return_scale
    margin = (2.0 * win_rate - 1.0) * scale
    now = f"(now {number_text(scale, 6)})"
    return f" ({win_rate:g} is a mean margin of {number_text(margin)}) or payoff.return_scale {now}"


def rating_drift(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Ratings against the games of policies far apart in time, and cycles, which no rating can express."""
    rows = {row.policy: row.elo / ELO_PER_LOGIT for row in league_ratings(state)}
    frozen = state.population.frozen()
    if len(rows) < 3:
        return
    pairs = frozen_pairs(state, frozen)
    far = np.flatnonzero((np.abs(pairs.first - pairs.second) >= len(frozen) // 2) & (pairs.games > 0))
    ratings = np.array([rows[state.population.names[number]] for number in frozen.tolist()])
    chance = win_probability(ratings[pairs.first[far]] - ratings[pairs.second[far]])
    games = pairs.games[far]
    excess = float((pairs.score[far] - games * chance).sum())
    deviation = float(np.sqrt((games * chance * (1.0 - chance)).sum()))
    if deviation > 0.0 and abs(excess) > 4.0 * deviation and abs(excess) > 0.05 * float(games.sum()):
        yield RunFinding(
            "rating drift",
            "Ratings of policies far apart in time do not fit the games between them.",
            f"the older of a pair scored {excess:+.0f} in {games.sum():.0f} games more than the ratings say, "
            f"{abs(excess) / deviation:.0f} standard deviations",
            "raise ratings.step_fraction and ratings.opponents_per_lease, so that distant pairs meet",
        )
    report = league_cycles(state)
    if report is not None and report.misleads:
        yield RunFinding(
            "rating drift",
            "One number per policy misleads: policies beat each other in a ring.",
            report.text(),
            "export the mixture instead of the best policy, and compare by `league ratings --model meta-game`",
        )


def seat_bias(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """A seat that wins far more, or far less, than the others of the same pairs."""
    if not state.is_competitive:
        return
    totals = state.payoff.totals.sum(axis=0)
    decided = totals[:, WIN] + totals[:, LOSS]
    shares = np.where(decided > 0, totals[:, WIN] / np.maximum(decided, 1), 0.5)
    seat = int(np.argmax(np.abs(shares - 0.5)))
    share, games, name = float(shares[seat]), int(decided[seat]), seat_text(history.seat_names, seat)
    if games >= MIN_GAMES and abs(share - 0.5) > 0.1 and abs(share - 0.5) * 2.0 * games**0.5 > 4.0:
        yield RunFinding(
            "seat bias",
            f"{share:.0%} of the decided games are won by {name}.",
            f"{games:,} decided games of that seat, all pairs together",
            "nothing where the game gives that seat an advantage (seats are paired, so ratings are fair); else look at "
            "the env's observations of the other seats with `league check-env`",
        )


def shared_interests(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Opponents who earned the same in every game, and not the same number in all: they want the same."""
    games = sum(ended for _, ended, _ in history.ends)
    earnings = history.earnings
    if games < MIN_GAMES or earnings is None:
        return
    groups = [group for group in earnings.equal_groups() if len({state.teams[seat] for seat in group}) > 1]
    if groups:
        seats = "; ".join(", ".join(seat_text(history.seat_names, seat) for seat in group) for group in groups)
        yield RunFinding(
            "opponents who earn the same",
            "Seats that play against each other earned the same in every game.",
            f"{seats}, in {games:,} games, by {number_text(earnings.low[groups[0][0]], 6)} to "
            f"{number_text(earnings.high[groups[0][0]], 6)} on average of a lease",
            "start a new run in which they are a team: env.teams, by the names that `league check-env` shows",
        )


def thin_exports(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Exports over so few snapshots that they are hardly more than the last one."""
    names = exported_snapshots(state)
    if not state.is_competitive or state.totals.games < MIN_GAMES or len(names) >= MIN_EXPORTED:
        return
    owners = dict.fromkeys(state.snapshots[name].player for name in names)
    taken = [
        f"{owner} has {state.players[owner].num_snapshots} in {state.players[owner].trained_steps:,} trained steps"
        for owner in owners
        if owner in state.players
    ]
    yield RunFinding(
        "few snapshots to export",
        f"What is exported as mixture, average and best rests on {counted(len(names), 'snapshot')}; "
        f"mixtures want at least {MIN_EXPORTED}.",
        "; ".join(taken) or "no player has a snapshot yet",
        _more_snapshots(state, next(iter(owners or state.players)), history.snapshots_per_budget),
    )


def _more_snapshots(state: LeagueState, player: str, per_budget: int) -> str:
    """The change that brings more snapshots of a player, where gates decide on them or the budget does."""
    if per_budget >= MIN_EXPORTED:
        return f"train on, or with a larger budget: {per_budget} snapshots are spread over all of it"
    if per_budget:
        return f"raise runtime.snapshots_per_budget (now {per_budget})"
    gate = state.config_of(player).gate
    return (
        f"lower gate.min_steps (now {gate.min_steps:,}) and gate.timeout_steps (now {gate.timeout_steps:,}), or train "
        "for longer"
    )


def drawn_by_timeout(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Draws of which most are games that a time limit ended, where those that it ends are nearly all draws.

    Totals tell how many games of an assignment were drawn and how many cut off, not which. But where more were cut off
    than drawn some had a result, and over many totals that shows. That draws are the longest games says nothing: a full
    board is a draw too.
    """
    if not history.ends or not state.is_competitive:
        return
    drawn, games, cut = np.array(history.ends, dtype=np.float64).T
    decided_by_limit = float(np.maximum(cut - drawn, 0.0).sum())
    if games.sum() < MIN_GAMES or drawn.sum() < 0.1 * games.sum():
        return
    if cut.sum() < 0.5 * drawn.sum() or decided_by_limit > 0.02 * cut.sum():
        return
    players = [player for player in state.players.values() if player.games]
    longest = max(players, key=lambda player: player.truncated / player.games)
    yield RunFinding(
        "draws that are timeouts",
        f"{drawn.sum() / games.sum():.0%} of the games are draws, most of them because a time limit ended the game.",
        f"the limit ended {cut.sum():,.0f} games, {drawn.sum():,.0f} were drawn; most often it ends games of "
        f"{longest.name}, {longest.truncated / longest.games:.0%} of its own",
        "raise the env's limit of turns (env.kwargs), or give a result at the limit: a draw there teaches to hold out",
    )


def idle_exploiters(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Exploiters frozen by the timeout repeatedly without beating any opponent, as far as the last timeout tells."""

    def best(player: PlayerState) -> Evidence | None:
        return max(history.held.get(player.name, ()), key=lambda row: row.mean, default=None)

    def best_win_rate(player: PlayerState) -> float | None:
        row = best(player)
        return None if row is None else row.mean

    for idle in diagnosis.idle_exploiters(state, best_win_rate):
        row, gate = best(idle.player), state.config_of(idle.player.name).gate
        assert row is not None
        yield RunFinding(
            "exploiters that learn nothing",
            f"{idle.player.name} was frozen {idle.frozen} times and beats no opponent.",
            f"at the last timeout its best win rate was {row.mean:.2f} against {row.opponent}",
            f"raise gate.timeout_steps (now {gate.timeout_steps:,}), the player's step_weight, or "
            "matchmaker.curriculum_fraction; or lower its gate.reset_probability",
        )


def wasted_games(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Training games against opponents that are always beaten."""
    for name, met in history.homes.items():
        total = sum(met.games.values())
        solved = [
            opponent for opponent, games in met.games.items() if met.score[opponent] > 0.97 * games and games >= 20
        ]
        wasted = sum(met.games[opponent] for opponent in solved)
        if total < MIN_GAMES or wasted < 0.3 * total:
            continue
        worst = max(solved, key=lambda opponent: met.games[opponent])
        config = state.config_of(name)
        weighting = given_options(config.matchmaker).get("weighting")
        rule = f"weighting is {weighting}" if weighting else f"matchmaker is {config.matchmaker_name}"
        yield RunFinding(
            "actors wasted on solved opponents",
            f"{name} spends {wasted / total:.0%} of its games on opponents that it always beats.",
            f"{len(solved)} such opponents recently, most games ({met.games[worst]:,}) against {worst}; its {rule}",
            "use matchmaker.weighting: squared (or hard with a higher pfsp_exponent), more self_play, or "
            "smaller probabilities of fixed opponents",
        )


def failing_games(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Games and leases that come to nothing."""
    totals = state.totals
    if totals.aborted > 0.01 * max(totals.games, 1):
        yield RunFinding(
            "failing games",
            f"{totals.aborted:,} games were thrown away because their env failed.",
            f"{totals.aborted / (totals.games + totals.aborted):.1%} of all games",
            "try the env with `league check-env`",
        )
    leases = totals.leases_finished + totals.leases_expired
    if totals.leases_expired > max(0.02 * leases, 20):
        yield RunFinding(
            "failing games",
            f"{totals.leases_expired:,} leases were lost.",
            f"{totals.leases_expired / leases:.1%} of all leases",
            "raise runtime.lease_deadline_s or lower league.lease_steps; see logs/ for hosts that die",
        )


def stagnation(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """Ratings that rise while fixed yardsticks do not, see `league.core.metagame.stagnation`."""
    series = series_of(state)
    if not series:
        return
    found = find_stagnation(series, {row.policy: row for row in league_ratings(state)})
    if found is not None:
        yield RunFinding(
            "ratings rise, yardsticks do not",
            "The league gets better at beating itself and no stronger.",
            found.text(),
            "look for a ring with `league ratings --model meta-game`; give past opponents a larger share (less "
            "self_play), raise the entropy cost, and export the mixture; or name stronger yardsticks",
        )
    beaten = saturated(series)
    if beaten and found is None:
        yield RunFinding(
            "yardsticks are always beaten",
            "No yardstick tells the newest snapshots apart.",
            f"they score over 97 % against {', '.join(beaten)}",
            "name stronger ones in probes.kinds: a bot that searches longer, or a policy of another run",
        )


def unlearnt(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """A newest snapshot that clearly loses to an earlier one."""
    for newest in _losses(state, ("past",)):
        yield RunFinding(
            "the past is unlearnt",
            f"{newest.snapshot} loses to {newest.note}, which came before it.",
            f"its score is {newest.value:.2f} [{newest.low:.2f}, {newest.high:.2f}] over {newest.games} games",
            "give past opponents a larger share of the games (less self_play), or export the mixture",
        )


def exploited(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """A newest snapshot that a fresh player beats clearly, after training against nothing else."""
    for newest in _losses(state, LEARNT_REPLY):
        learnt = f"; the player {newest.note}" if newest.note else ""
        yield RunFinding(
            "a fresh player beats the newest snapshot",
            f"{newest.snapshot} is exploitable by a learner of a small budget.",
            f"its score is {newest.value:.2f} [{newest.low:.2f}, {newest.high:.2f}]{learnt}",
            "export average or mixture, of which a fresh player finds less; or train with main exploiters",
        )


def exploited_by_scout(state: LeagueState, history: RunHistory) -> Iterator[RunFinding]:
    """A population chosen by measurement whose main agent a scout still exploits, or that no scout has tried."""
    scout = scouting.scout_of(state)
    if scout is None:
        return
    population, reason = scouting.population_of(state)
    if population == scouting.EXPLOITERS:
        yield RunFinding(
            "a scout still finds a weakness",
            "The main agent was exploited before and after it met its past.",
            reason,
            "set league.population.choice: always, or train with a preset that has exploiters from the start",
        )
    mains = [player for player in state.players.values() if player.role == MAIN_ROLE]
    if not scout.version and any(player.num_snapshots >= MIN_EXPORTED for player in mains):
        yield RunFinding(
            "nobody has tried to exploit the main agent",
            f"A scout's life would be more than {scouting.MAX_SHARE:.0%} of what is learnt from.",
            f"{mains[0].name} had {mains[0].version:,} updates",
            "give the run a longer budget, or set league.population.choice: always",
        )


def _losses(state: LeagueState, probes: Sequence[str]) -> Iterator[Point]:
    """The newest readings of some probes in which a snapshot lost with its whole interval."""
    newest = (series.points[-1] for series in series_of(state).values() if series.probe in probes)
    return (point for point in newest if point.high < WORST_PAST)


Check = Callable[[LeagueState, RunHistory], Iterator[RunFinding]]

CHECKS: tuple[Check, ...] = (
    starved_pairs,
    silent_gates,
    rating_drift,
    seat_bias,
    shared_interests,
    thin_exports,
    drawn_by_timeout,
    idle_exploiters,
    wasted_games,
    failing_games,
    stagnation,
    unlearnt,
    exploited,
    exploited_by_scout,
)

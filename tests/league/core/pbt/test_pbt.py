"""Population based training: who copies whom, what a transplant moves, and what is pinned until it is done."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from league.core.directives import view_of
from league.core.matchmaking.roles import MainAgent
from league.core.pbt.pbt import explored, first_values, own_config, pinned_checkpoints, with_self_play
from league.core.pbt.pbt_selection import SelectionTrial, selection_of
from league.core.state.built_ins import PBT_SELECTIONS, options_of
from league.core.state.commands import (
    ConfirmReset,
    ConfirmSnapshot,
    ConfirmTransplant,
    DropTransplant,
    FinishLease,
    Refused,
    RequestSnapshot,
    SaveCheckpoint,
    StartRun,
)
from league.core.state.events import DirectiveIssued, PlayerTransplanted, SnapshotAdded
from league.core.state.league_config import (
    GateConfig,
    LeagueConfig,
    PlayerConfig,
    RatingConfig,
)
from league.core.state.population_config import HyperparameterConfig, PbtConfig
from league.core.state.records import Directive, Hyperparameter
from league.core.state.state import digest
from tests.league.core.own_components import SELECTION
from tests.league.core.simulated_league import SimulatedLeague, outcome_of

NEVER = GateConfig(min_steps=10**9, timeout_steps=10**9)
PARAMETERS = (
    HyperparameterConfig("learning_rate"),
    HyperparameterConfig("pfsp_exponent", initial=2.0, low=0.5, high=8.0),
    HyperparameterConfig("self_play", initial=0.35, low=0.05, high=0.9),
)
PBT = PbtConfig(selection="elo_gap", hyperparameters=PARAMETERS, period_steps=1_000, burn_in_steps=2_000, min_games=20)


def league_of(
    pbt: PbtConfig = PBT, *, teams: tuple[int, ...] = (0, 1), roles: tuple[str, ...] = ("main_agent",) * 2
) -> SimulatedLeague:
    """Players main-0 and main-1 (or of those roles), each with its first snapshot."""
    counts = {role: roles.count(role) for role in roles}
    players = tuple(PlayerConfig(role=role, count=count, gate=NEVER) for role, count in counts.items())
    league = SimulatedLeague(
        LeagueConfig(players=players, pbt=pbt, ratings=RatingConfig(step_fraction=0.0)), teams=teams
    )
    league.confirm_directives()
    return league


def save(league: SimulatedLeague, *players: str) -> None:
    for name in players:
        known = league.state.players[name]
        league.ask(
            SaveCheckpoint(name, f"{name}-{known.trained_steps}".ljust(64, "0"), known.version, known.trained_steps)
        )


def play(league: SimulatedLeague, home: str, opponent: str, *, wins: int, losses: int, returns: float = 0.0) -> None:
    lease = league.grant("train")
    while lease.home != home:
        league.finish(lease, games=0, env_steps=1_000)
        lease = league.grant("train")
    policies = (home, opponent) if len(league.state.teams) == 2 else (home,)
    outcome = outcome_of(policies, league.state.teams, games=wins + losses, winners=[0] * wins + [1] * losses)
    if len(policies) == 1:
        outcome = dataclasses.replace(outcome, return_sums=(returns * (wins + losses),))
    league.ask(FinishLease(lease.lease_id, lease.token, 1_000, (outcome,)))


def ready(pbt: PbtConfig = PBT) -> SimulatedLeague:
    """main-0 loses most games against main-1, both past their burn-in and saved."""
    league = league_of(pbt)
    for name in ("main-0", "main-1"):
        league.train(name, 2_000)
    save(league, "main-0", "main-1")
    play(league, "main-0", "main-1", wins=5, losses=45)
    return league


def transplants(events: list) -> list[Directive]:
    return [
        event.directive
        for event in events
        if isinstance(event, DirectiveIssued) and event.directive.kind == "transplant"
    ]


def test_the_weaker_player_is_ordered_to_copy_and_the_donors_restart_state_is_pinned() -> None:
    league = ready()
    (directive,) = transplants(league.train("main-0", 1_000))
    assert (directive.player, directive.donor, directive.source) == ("main-0", "main-1", "main-1-s0")
    assert directive.checkpoint == "main-1-2000".ljust(64, "0")
    assert "elo_gap" in directive.reason
    save(league, "main-1")
    assert pinned_checkpoints(league.state) == {("main-1", directive.checkpoint)}, "also after the donor was saved anew"
    league.ask(StartRun())
    assert league.state.open_directives("main-0") == [directive], "a restart carries on with it"
    league.confirm_directives()
    assert pinned_checkpoints(league.state) == frozenset()


def test_the_stronger_player_copies_nobody() -> None:
    assert not transplants(ready().train("main-1", 5_000))


def test_a_transplant_is_one_event_that_moves_state_ancestry_and_values_and_voids_what_was_known() -> None:
    league = ready()
    (directive,) = transplants(league.train("main-0", 1_000))
    before = league.state.players["main-0"]
    lease = next(lease for _ in range(9) if (lease := league.grant("train")).home == "main-1")
    (event,) = league.ask(ConfirmTransplant(directive.directive_id, "9" * 64, 8, 2_000, has_ema=True))
    assert isinstance(event, PlayerTransplanted)
    player = league.state.players["main-0"]
    assert player.checkpoint is not None and player.checkpoint.has_ema
    assert (player.checkpoint.digest, player.version, player.trained_steps) == ("9" * 64, 8, 2_000)
    assert (player.parent, player.transplants, player.generation) == ("main-1-s0", 1, before.generation)
    assert player.hyperparameters == directive.hyperparameters
    posterior = view_of(league.state, "main-0").posterior
    assert posterior.games.sum() == 0.0
    fresh = [league.grant("train") for _ in range(4)]
    assert {given.generation for given in fresh if given.home == "main-0"} == {1}, "games in flight are thrown away"
    league.finish(lease)


def test_a_player_waits_while_its_transplant_is_open() -> None:
    league = ready()
    league.train("main-0", 1_000)
    assert {league.grant("train").home for _ in range(5)} == {"main-1"}
    with pytest.raises(Refused, match="take over"):
        league.ask(RequestSnapshot("main-0", "manual"))


def test_a_transplant_that_cannot_be_carried_out_is_dropped_and_the_player_continues() -> None:
    league = ready()
    (directive,) = transplants(league.train("main-0", 1_000))
    values = league.state.players["main-0"].hyperparameters
    league.ask(DropTransplant(directive.directive_id, "the restart state is damaged"))
    assert league.state.players["main-0"].hyperparameters == values
    assert "main-0" in {league.grant("train").home for _ in range(4)}


def test_confirmations_of_a_transplant_count_once_and_only_for_it() -> None:
    league = ready()
    (directive,) = transplants(league.train("main-0", 1_000))
    for command in (
        ConfirmReset(directive.directive_id),
        ConfirmTransplant(directive.directive_id, "9" * 64, -1, 0),
        ConfirmTransplant(directive.directive_id + 1, "9" * 64, 1, 0),
    ):
        before = digest(league.state)
        with pytest.raises(Refused):
            league.ask(command)
        assert digest(league.state) == before
    league.ask(ConfirmTransplant(directive.directive_id, "9" * 64, 1, 0))
    with pytest.raises(Refused):
        league.ask(ConfirmTransplant(directive.directive_id, "9" * 64, 1, 0))


def test_nobody_copies_before_its_burn_in_and_again_not_after_a_transplant() -> None:
    league = league_of()
    save(league, "main-0", "main-1")
    play(league, "main-0", "main-1", wins=5, losses=45)
    league.train("main-1", 2_000)
    assert not transplants(league.train("main-0", 1_000))
    assert not transplants(league.train("main-0", 1_000))
    assert transplants(league.train("main-0", 1_000))
    league.confirm_directives()
    play(league, "main-0", "main-1", wins=5, losses=45)
    assert not transplants(league.train("main-0", 1_000))


def test_nobody_copies_a_player_without_a_restart_state_or_on_few_games() -> None:
    league = league_of()
    for name in ("main-0", "main-1"):
        league.train(name, 2_000)
    save(league, "main-0")
    play(league, "main-0", "main-1", wins=5, losses=45)
    assert not transplants(league.train("main-0", 1_000))
    league = league_of()
    for name in ("main-0", "main-1"):
        league.train(name, 2_000)
    save(league, "main-0", "main-1")
    play(league, "main-0", "main-1", wins=0, losses=10)
    assert not transplants(league.train("main-0", 1_000))


def test_a_player_is_looked_at_once_a_period() -> None:
    league = ready(dataclasses.replace(PBT, selection={"kind": "elo_gap", "copy_below": 0.01}))
    league.train("main-0", 900)
    assert not transplants(league.train("main-0", 50))
    league.state.config = dataclasses.replace(league.state.config, pbt=PBT)  # type: ignore[type-var]
    assert not transplants(league.train("main-0", 40))
    assert transplants(league.train("main-0", 60))


def test_a_period_that_ends_with_a_snapshot_is_made_up_for_once_the_weights_are_frozen() -> None:
    """Reports as long as the way between two snapshots order one every time; nobody would ever copy."""
    league = ready()
    groups = tuple(
        dataclasses.replace(group, gate=GateConfig(min_steps=1_000, timeout_steps=1_000))
        for group in league.state.config.players  # type: ignore[union-attr]
    )
    league.state.config = dataclasses.replace(league.state.config, players=groups)  # type: ignore[type-var]
    events = league.train("main-0", 1_000)
    assert not transplants(events)
    (snapshot,) = [event.directive for event in events if isinstance(event, DirectiveIssued)]
    confirmed = ConfirmSnapshot(snapshot.directive_id, "8" * 64, 3, 3_000)
    added, *after = league.ask(confirmed)
    assert isinstance(added, SnapshotAdded)
    (directive,) = transplants(after)
    assert (directive.player, directive.donor) == ("main-0", "main-1")
    league.confirm_directives()
    assert league.state.players["main-0"].transplants == 1


@pytest.mark.parametrize("reason", ["initial", "final", "manual"])
def test_only_a_snapshot_by_the_gate_may_bring_a_transplant(reason: str) -> None:
    league = ready()
    (directive,) = [Directive(league.state.next_directive_id, "snapshot", "main-0", reason)]
    league.state.directives[directive.directive_id] = directive
    assert len(league.ask(ConfirmSnapshot(directive.directive_id, "8" * 64, 3, 9_000))) == 1


@pytest.mark.parametrize(("across", "expected"), [(False, 0), (True, 1)])
def test_roles_copy_each_other_only_where_that_is_asked_for(across: bool, expected: int) -> None:
    league = league_of(dataclasses.replace(PBT, across_roles=across), roles=("main_agent", "league_exploiter"))
    for name in league.state.players:
        league.train(name, 2_000)
    save(league, *league.state.players)
    play(league, "main-0", "league-exploiter-0", wins=5, losses=45)
    assert len(transplants(league.train("main-0", 1_000))) == expected


def test_without_opponents_the_mean_return_decides() -> None:
    league = league_of(dataclasses.replace(PBT, selection="tournament"), teams=(0,))
    for name in league.state.players:
        league.train(name, 2_000)
    save(league, *league.state.players)
    play(league, "main-0", "", wins=100, losses=0, returns=1.0)
    play(league, "main-1", "", wins=100, losses=0, returns=3.0)
    assert not transplants(league.train("main-1", 1_000))
    (directive,) = transplants(league.train("main-0", 1_000))
    assert directive.donor == "main-1"


def trial(score: list[float], player: int, kind: str, deviation: float = 0.1) -> SelectionTrial:
    names = tuple(f"main-{i}" for i in range(len(score)))
    config = PbtConfig(selection=kind)
    return SelectionTrial(names, player, np.array(score), np.full(len(score), deviation), True, config)


@pytest.mark.parametrize("kind", [*sorted(PBT_SELECTIONS), SELECTION])
@pytest.mark.parametrize("seed", range(5))
def test_every_selection_moves_the_worst_never_the_best_and_nobody_to_itself(kind: str, seed: int) -> None:
    selection, rng = selection_of(PbtConfig(selection=kind)), np.random.default_rng(seed)
    score = [-3.0, -1.0, 0.0, 3.0]
    assert selection(trial(score, 3, kind), rng) is None
    copies = [selection(trial(score, 0, kind), rng) for _ in range(5)]
    assert all(copy is not None and copy.donor != 0 and copy.evidence for copy in copies)
    assert selection(trial([0.0] * 4, 1, kind), rng) is None, "equal players stay as they are"


def test_truncation_copies_the_best_quantile_into_the_worst_one_only() -> None:
    selection, rng = selection_of(PbtConfig(selection="truncation")), np.random.default_rng(0)
    score = list(np.linspace(-2, 2, 8))
    staleness_clock = [player for player in range(8) if selection(trial(score, player, "truncation"), rng) is not None]
    assert staleness_clock == [0, 1]
    donors = {selection(trial(score, 0, "truncation"), rng).donor for _ in range(40)}  # type: ignore[union-attr]
    assert donors == {6, 7}


def test_an_elo_gap_copies_below_30_percent_and_a_tournament_asks_for_certainty() -> None:
    rng = np.random.default_rng(0)
    elo, tournament = (selection_of(PbtConfig(selection=kind)) for kind in ("elo_gap", "tournament"))
    logit = float(np.log(0.3 / 0.7))
    assert elo(trial([logit - 0.01, 0.0], 0, "elo_gap"), rng) is not None
    assert elo(trial([logit + 0.01, 0.0], 0, "elo_gap"), rng) is None
    assert tournament(trial([0.0, 0.5], 0, "tournament", deviation=0.1), rng) is not None
    assert tournament(trial([0.0, 0.5], 0, "tournament", deviation=1.0), rng) is None


def test_values_change_by_the_factor_and_stay_within_their_bounds() -> None:
    config = dataclasses.replace(PBT, resample=0.0)
    donor = tuple(Hyperparameter(item.name, item.initial) for item in PARAMETERS)
    seen: dict[str, set[float]] = {item.name: set() for item in PARAMETERS}
    for seed in range(40):
        for value in explored(donor, config, np.random.default_rng(seed)):
            seen[value.name].add(round(value.value, 6))
    assert seen["learning_rate"] == {1.2, round(1 / 1.2, 6)}
    for seed in range(200):
        wild = dataclasses.replace(PBT, factor=50.0, resample=0.5)
        for item, value in zip(PARAMETERS, explored(donor, wild, np.random.default_rng(seed)), strict=True):
            assert item.low <= value.value <= item.high


def test_without_mutation_the_donors_values_are_kept_and_missing_ones_take_the_initial() -> None:
    config = dataclasses.replace(PBT, mutation=0.0)
    found = explored((Hyperparameter("learning_rate", 3.0),), config, np.random.default_rng(0))
    assert [(item.name, item.value) for item in found] == [
        ("learning_rate", 3.0),
        ("pfsp_exponent", 2.0),
        ("self_play", 0.35),
    ]


def test_players_start_around_the_initial_values_and_the_first_one_on_them() -> None:
    rng = np.random.default_rng(0)
    assert [item.value for item in first_values(PBT, PlayerConfig(), rng, is_first=True)] == [1.0, 2.0, 0.35]
    spread = [first_values(PBT, PlayerConfig(), rng, is_first=False)[0].value for _ in range(100)]
    assert 1.2**-3 <= min(spread) < 0.7
    assert 1.4 < max(spread) <= 1.2**3
    assert first_values(PbtConfig(), PlayerConfig(), rng, is_first=False) == ()


def test_a_groups_own_hyperparameters_reach_its_players_and_tuning_counts_over_them() -> None:
    own = (Hyperparameter("entropy_cost", 0.25), Hyperparameter("learning_rate", 3.0))
    group = PlayerConfig(hyperparameters=own)
    rng = np.random.default_rng(0)
    assert first_values(PbtConfig(), group, rng, is_first=False) == own
    assert {item.name: item.value for item in first_values(PBT, group, rng, is_first=True)} == {
        "learning_rate": 1.0,
        "pfsp_exponent": 2.0,
        "self_play": 0.35,
        "entropy_cost": 0.25,
    }


@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        ([("entropy", 1.0)], "no hyperparameter 'entropy'"),
        ([("discount", 0.0)], "discount must be positive"),
        ([("learning_rate", 1.0), ("learning_rate", 2.0)], "named twice"),
    ],
)
def test_a_group_with_impossible_hyperparameters_is_refused(
    hyperparameters: list[tuple[str, float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PlayerConfig(hyperparameters=tuple(Hyperparameter(*item) for item in hyperparameters))


def test_tuned_matchmaking_values_are_what_the_player_meets_its_opponents_by() -> None:
    league = league_of()
    league.state.players["main-0"].hyperparameters = (
        Hyperparameter("self_play", 0.6),
        Hyperparameter("pfsp_exponent", 5.0),
    )
    options = own_config(league.state, "main-0").matchmaker
    assert (options["self_play"], options["weighting"], options["pfsp_exponent"]) == (0.6, "hard", 5.0)
    assert options["pfsp"] / options["verification"] == pytest.approx(0.5 / 0.15)
    league.state.players["main-1"].hyperparameters = ()
    assert own_config(league.state, "main-1") is league.state.config_of("main-1")


@pytest.mark.parametrize("step_weight", [0.0, 0.05, 0.35, 1.0])
def test_any_share_of_self_play_leaves_shares_that_sum_to_one(step_weight: float) -> None:
    for matchmaker in (MainAgent(), MainAgent(self_play=1.0, pfsp=0.0, verification=0.0)):
        found = with_self_play(options_of(matchmaker), step_weight)
        assert found["self_play"] + found["pfsp"] + found["verification"] == pytest.approx(1.0)
    assert with_self_play({"self_play": 0.35, "window": 3}, step_weight) == {"self_play": step_weight, "window": 3}


def test_the_worse_players_continue_from_a_mean_that_favours_the_best() -> None:
    rng, selection = np.random.default_rng(0), selection_of(PbtConfig(selection="weighted_mean"))
    moved = [selection(trial([1.0, 4.0, 2.0, 3.0], player, "weighted_mean"), rng) for player in range(4)]
    assert [copy is None for copy in moved] == [False, True, False, True]
    copy = moved[0]
    assert copy is not None and copy.donor == 1 and sum(copy.weights) == pytest.approx(1.0)
    assert copy.weights[0] == copy.weights[2] == 0.0 < copy.weights[3] < copy.weights[1]
    # log(2.5) - log(1) and log(2.5) - log(2)
    assert copy.weights[1] == pytest.approx(np.log(2.5) / (2 * np.log(2.5) - np.log(2)))
    assert selection(trial([1.0, 1.0], 0, "weighted_mean"), rng) is None

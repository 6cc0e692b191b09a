"""OpenSpiel's games against the same games stepped one by one, and what their specs say."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from league.envs.adapters.openspiel_parts.openspiel_game import TIME
from league.envs.bots import make_bot
from league.envs.conformance import check_env
from league.envs.decision_tree import TreeGame
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError
from league.envs.registry import make, spec_of
from league.envs.sampling import uniform_legal
from tests.envs.oracles.slow_openspiel import SlowGame

KINDS = {
    "perfect": "tic_tac_toe",
    "hidden": "leduc_poker",
    "three_seats": "kuhn_poker(players=3)",
    "simultaneous": "goofspiel(num_cards=4,imp_info=true)",
    "simultaneous_with_chance": "markov_soccer(horizon=20)",
    "simultaneous_in_rounds": "oshi_zumo(coins=6,size=1)",
    "one_shot": "blotto(coins=4,fields=2)",
    "three_seats_at_once": "goofspiel(num_cards=3,players=3)",
    "chance_between": "backgammon",
    "rewards_on_the_way": "laser_tag(horizon=40)",
    "shared_rewards": "hanabi",
    "positions_recur_with_chance": "pig",
    "one_seat": "catch",
    "written_in_python": "python_tic_tac_toe",
}


def game_of(name: str, num_envs: int = 4) -> BatchedEnv:
    return make(EnvConfig(f"openspiel:{name}"), num_envs=num_envs)


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_every_turn_equals_the_game_stepped_one_by_one(name: str) -> None:
    env, rng = game_of(name), np.random.default_rng(5)
    turn, field = env.reset(5), next(iter(env.spec.observations))
    slow, draws, num_ended = [SlowGame(name, rng) for _ in range(4)], np.random.default_rng(1), 0
    returned, waiting = np.zeros((4, env.spec.num_seats)), np.zeros((4, env.spec.num_seats))
    for _ in range(150):
        slots = [(game, seat) for game, one in enumerate(slow) for seat in one.seats()]
        assert list(zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True)) == slots
        assert turn.action_mask is not None
        for row, (game, seat) in enumerate(slots):
            assert np.array_equal(turn.obs[field][row].ravel(), np.array(slow[game].seen(seat), np.float32))
            assert np.flatnonzero(turn.action_mask[row]).tolist() == slow[game].state.legal_actions(seat)
            assert env.spec.num_seats == 1 or np.flatnonzero(turn.obs["seat"][row]).tolist() == [seat]
            if TIME in turn.obs:
                assert np.flatnonzero(turn.obs[TIME][row]).tolist() == [slow[game].time(len(turn.obs[TIME][row]))]
            waiting[game, seat] = 0
        actions = uniform_legal(turn.action_mask, draws)
        turn = env.step(actions)
        for game, one in enumerate(slow):
            mine = {seat: int(actions[row]) for row, (where, seat) in enumerate(slots) if where == game}
            ended = one.act(mine)
            now = np.array(one.state.returns() if ended is None else ended)
            waiting[game] += now - returned[game]
            returned[game] = now if ended is None else 0
            assert turn.terminated[game] == (ended is not None)
            assert np.allclose(turn.rewards[game], waiting[game])
            assert np.allclose(turn.returns[game], ended or np.zeros_like(now))
            if ended is not None:
                waiting[game], num_ended = 0, num_ended + 1
    assert num_ended
    assert not turn.truncated.any()


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_a_game_keeps_the_contract(name: str) -> None:
    faults = [found for found in check_env(EnvConfig(f"openspiel:{name}"), steps=60) if found.kind == "fault"]
    assert not faults


@pytest.mark.parametrize(("name", "num_seats"), [("kuhn_poker", 2), ("leduc_poker", 2)])
def test_random_play_of_poker_is_that_of_our_own(name: str, num_seats: int) -> None:
    results = []
    for env in (make(EnvConfig(name), num_envs=512), game_of(name, 512)):
        turn, rng, returns, num_turns = env.reset(1), np.random.default_rng(2), [], 0
        for _ in range(80):
            assert turn.action_mask is not None
            turn = env.step(uniform_legal(turn.action_mask, rng))
            returns.append(turn.returns[turn.ended])
            num_turns += 512
        all_returns = np.concatenate(returns)
        results.append((all_returns, num_turns / len(all_returns)))
    (ours, our_length), (theirs, their_length) = results
    assert their_length == pytest.approx(our_length, rel=0.02)
    error = np.hypot(ours.std() / len(ours) ** 0.5, theirs.std() / len(theirs) ** 0.5)
    assert abs(ours[:, 0].mean() - theirs[:, 0].mean()) < 4 * error
    assert theirs.std() == pytest.approx(ours.std(), rel=0.05)


def test_the_spec_says_what_the_game_is() -> None:
    specs = {kind: spec_of(EnvConfig(f"openspiel:{name}")) for kind, name in KINDS.items()}
    assert {kind for kind, spec in specs.items() if spec.hidden_information} == {
        "hidden", "three_seats", "simultaneous", "shared_rewards"
    }  # fmt: skip
    assert {kind for kind, spec in specs.items() if not spec.win_draw_loss} == {
        "hidden", "three_seats", "rewards_on_the_way", "shared_rewards", "one_seat", "three_seats_at_once"
    }  # fmt: skip
    assert specs["hidden"].return_range == (-13.0, 13.0)
    assert specs["three_seats"].num_seats == 3
    assert specs["simultaneous"].max_turns == 4
    assert specs["rewards_on_the_way"].observations["observation"].shape == (4, 7, 7)
    assert specs["hidden"].observations["information_state"].shape == (30,)
    assert list(specs["one_seat"].observations) == ["observation"]


def test_a_tensor_that_looks_the_same_at_different_times_has_the_time_beside_it() -> None:
    timed = {kind for kind, name in KINDS.items() if TIME in spec_of(EnvConfig(f"openspiel:{name}")).observations}
    assert timed == {
        "simultaneous_with_chance",
        "simultaneous_in_rounds",
        "rewards_on_the_way",
        "positions_recur_with_chance",
    }
    assert spec_of(EnvConfig("openspiel:oshi_zumo(horizon=5)")).observations[TIME].shape == (5,)
    assert spec_of(EnvConfig("openspiel:oshi_zumo(horizon=500)")).observations[TIME].shape == (32,)


def test_a_seat_that_does_not_see_all_moves_has_no_time() -> None:
    spec = spec_of(EnvConfig("openspiel:phantom_ttt"))
    assert spec.hidden_information
    assert TIME not in spec.observations


def test_copies_and_saved_games_know_the_time() -> None:
    env, other = (game_of("oshi_zumo(coins=6,size=2,horizon=5)", 2) for _ in range(2))
    env.reset(0)
    turn = env.step(np.zeros(4, np.int64))
    copies, copied = env.fork(np.array([1]))
    assert turn.obs[TIME].argmax(1).tolist() == [1, 1, 1, 1]
    assert other.load(env.save()).obs[TIME].argmax(1).tolist() == [1, 1, 1, 1]
    assert copied.obs[TIME].argmax(1).tolist() == [1, 1]
    assert copies.step(np.zeros(2, np.int64)).obs[TIME].argmax(1).tolist() == [2, 2]


def test_information_states_with_one_tensor_have_other_times() -> None:
    env = game_of("oshi_zumo(coins=3,size=1,horizon=3)", 1)
    assert isinstance(env, TreeGame)
    states = env.decision_tree().info_states
    decisions, at = np.zeros(len(states.seat), np.int64), states.parent
    while (at >= 0).any():
        decisions += at >= 0
        at = np.where(at >= 0, states.parent[at], -1)
    assert np.array_equal(states.fields[TIME].argmax(1), decisions)
    tensors = np.concatenate([states.fields["observation"], states.seat[:, None]], axis=1)
    times = np.concatenate([tensors, decisions[:, None]], axis=1)
    assert len(np.unique(times, axis=0)) > len(np.unique(tensors, axis=0))


def test_parameters_may_stand_in_kwargs() -> None:
    named = spec_of(EnvConfig("openspiel:goofspiel(imp_info=true,num_cards=5)"))
    given = spec_of(EnvConfig("openspiel:goofspiel(imp_info=true)", {"num_cards": 5}))
    assert given.actions == named.actions
    assert given.observations == named.observations


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (EnvConfig("openspiel:goofspil"), "did you mean openspiel:goofspiel"),
        (EnvConfig("openspiel:goofspiel(cards=4)"), "Unknown parameter 'cards'. Available parameters are: egocentric"),
        (EnvConfig("openspiel:goofspiel", {"num_cards": "x"}), "Expected type: kInt"),
        (EnvConfig("openspiel:goofspiel", {"num_cards": [1]}), "cannot load it"),
        (EnvConfig("openspiel:nfg_game"), "cannot load it: map::at"),
        (EnvConfig("openspiel:mfg_crowd_modelling"), "mean-field"),
        (EnvConfig("openspiel:negotiation"), "draws its chance events itself"),
        (EnvConfig("openspiel:crossword"), "does not give the tensor that it promises: ObservationTensorShape"),
        (EnvConfig("openspiel:cribbage"), "neither an information state tensor nor an observation tensor"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(env: EnvConfig, message: str) -> None:
    with pytest.raises(EnvError, match=message) as caught:
        make(env, num_envs=1)
    assert "\n" not in str(caught.value)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("league.envs.adapters.openspiel")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(EnvError, match=r"install the extra `openspiel`"):
        make(EnvConfig("openspiel:kuhn_poker"), num_envs=1)


def test_an_illegal_action_is_refused_before_openspiel_sees_it() -> None:
    env = game_of("tic_tac_toe", 2)
    env.reset(0)
    env.step(np.array([4, 0]))
    with pytest.raises(EnvError, match="game 0, seat player_1: action 4 is illegal"):
        env.step(np.array([4, 1]))


def test_search_plays_on_copies() -> None:
    env = game_of("tic_tac_toe", 20)
    turn, bots = env.reset(0), (make_bot("mcts:60", seed=0), make_bot("random", seed=0))
    results: list[float] = []
    while len(results) < 20:
        bot = bots[int(turn.seat[0])]
        slots = np.arange(20)
        first = slots[turn.seat == 0]
        actions = np.zeros(20, np.int64)
        actions[first] = bots[0].act(env, turn, first)
        actions[turn.seat == 1] = bots[1].act(env, turn, slots[turn.seat == 1])
        assert bot is not None
        turn = env.step(actions)
        results += turn.returns[turn.ended, 0].tolist()
    assert np.mean(results) > 0.8

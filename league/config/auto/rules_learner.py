"""Rules of the learner: algorithm, batch, reuse of rows, discount, loss weights and schedules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from league.agents.learner.config import DEFAULT_ALGORITHM
from league.config.auto.draft import ALGORITHM, AutoValue, Draft
from league.config.auto.rules_cores import decisions_of_update, epochs_of
from league.config.auto.situation import Situation, power_of_two, rounded_moments
from league.core.adapting import ENTROPY_GROWTH, FULL_ENTROPY_DECISIONS, MIN_FIRST_COST
from league.envs.facts.game_facts import GameFacts
from league.envs.text.number_text import number_text

REUSE_RATIO = 3.0
"""Cost of a decision over the cost of learning from it, from which rows are seen more than once."""
MAX_EPOCHS = 8
UPDATES = 3000.0
"""Optimizer steps that a budget should hold at least."""
MIN_BATCH, MAX_BATCH = 256, 2048
"""Decisions in one update."""
FEW_UPDATES, SMALLEST_BATCH = 50.0, 64
"""Optimizer steps below which smaller batches, down to this one, are worth their noise: a handful moves nothing."""
MIXED_BATCH = {False: 2048, True: 1024}
"""The same at least where play must be mixed, by whether rows are seen again: smaller updates are the draws' noise."""
MIXED_MAX_BATCH = 8192
SHORT_GAME = 8.0
"""Decisions of a seat in an episode up to which nothing needs a discount."""
LONG_GAME = 16.0
"""Decisions of a seat in an episode from which each one brings little, where all seats act at once."""
LONG_ENTROPY = 0.03
"""Entropy cost in such games: advantages are mostly chance there, and more of it leaves play uniform."""
GUESSING_SHARE = 0.05
"""Of the variance of rewards: interaction of two seats' actions from which they must guess each other. Measured: below
0.013 in pursuits, pushing and gathering, from 0.33 in repeated games of guessing; 0.02 in the prisoner's dilemma."""
EXPECTED = "runtime.expected_decisions"
"""Setting with the decisions that an entropy cost was chosen for."""
MIXED_END = 0.07
"""Of the entropy cost of mixed play at the end: what is left of it keeps play from the equilibrium."""
STAKES_SHARE = 0.3
"""Of the deviation of a seat's returns under random play: smaller advantages count as noise."""
SMALL_RETURN, LARGE_RETURN = 0.05, 1e5
"""Returns below which rewards are scaled up, and above which they are scaled down."""
UNEVEN_RETURNS = 10.0
"""Ratio of returns between seat groups from which each has its own scale."""
FAR_FROM_ZERO = 3.0
"""Deviations of the returns of random play from which their mean lies far from 0."""
FLOAT32_STEP = 1e-6
"""Share of a number by which float32 tells two of them well apart."""
REWARD_SHARE = 0.01
"""Of the discounted rewards that a lone seat meets under random play: smaller advantages count as noise."""


def algorithm(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A clip around a target network where play is mixed; epochs where games are slow or there is no opponent."""
    ratio = situation.step_s(draft.whole("actors.num_envs")) / situation.network.learn_s
    slow = ratio >= REUSE_RATIO and not situation.is_exact
    cost = (
        "the game is taken to be fast"
        if situation.is_exact
        else f"a decision costs {number_text(ratio, 2)} times its learning"
    )
    if _is_mixed(situation):
        kinds, why = ("appo", "ppo", DEFAULT_ALGORITHM), "a clip around a target network keeps play mixed"
        epochs = power_of_two(ratio, low=2, high=MAX_EPOCHS) if slow else 2
    elif not situation.game.is_competitive:
        kinds, why, epochs = ("ppo", "appo", DEFAULT_ALGORITHM), "rewards do not move away from a lone team", MAX_EPOCHS
    elif _is_drawn_out(situation):
        why = f"seats act at once {situation.game.decisions.mean:.0f} times a game, one action of which brings little"
        kinds, epochs = ("ppo", "appo", DEFAULT_ALGORITHM), power_of_two(ratio, low=4, high=MAX_EPOCHS)
    elif slow:
        kinds, why = ("ppo", "appo", DEFAULT_ALGORITHM), cost
        epochs = power_of_two(ratio, low=2, high=MAX_EPOCHS)
    else:
        kinds, why, epochs = (DEFAULT_ALGORITHM, "ppo", "appo"), cost, 1
    for kind in kinds:
        if draft.algorithm_takes(kind):
            yield AutoValue(f"{ALGORITHM}.kind", kind, why)
    yield AutoValue(f"{ALGORITHM}.epochs", epochs, f"rows are learnt from {epochs} times; {cost}")
    yield AutoValue(f"{ALGORITHM}.clip_ratio", 0.2, "bounds what several epochs may change")


def batch(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The largest batch that leaves thousands of updates in the budget, a small one where there would be a handful."""
    chosen, num_envs = draft.value(f"{ALGORITHM}.epochs"), draft.whole("actors.num_envs")
    epochs = chosen if isinstance(chosen, int) else 1
    size, most = (MIXED_BATCH[epochs > 1], MIXED_MAX_BATCH) if _is_mixed(situation) else (MIN_BATCH, MAX_BATCH)

    def updates(size: int) -> float:
        return situation.least_decisions(num_envs, epochs=epochs, batch=size) * epochs / size

    while 2 * size <= most and updates(2 * size) >= UPDATES:
        size *= 2
    while size > SMALLEST_BATCH and updates(size) < FEW_UPDATES:
        size //= 2
    rows = max(size // draft.whole("learner.unroll_length"), 1)
    reason = f"{size:,} decisions an update, at least {number_text(updates(size), 1)} updates in the budget"
    yield AutoValue("learner.batch_rows", rows, reason)


def discount(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """No discount in short games that pay at their end; a horizon of the episode's length in long ones."""
    game = situation.game
    length = game.decisions.mean
    if game.final_only and length <= SHORT_GAME and game.truncated == 0.0:
        yield AutoValue("learner.gamma", 1.0, f"{length:.1f} decisions a game, paid at its end")
    elif length <= 100.0:
        yield AutoValue("learner.gamma", 0.99, f"{length:.0f} decisions a game")
    else:
        yield AutoValue("learner.gamma", 0.995, f"{length:.0f} decisions a game")
    if _is_mixed(situation) and length <= SHORT_GAME:
        yield AutoValue(f"{ALGORITHM}.lambda_", 1.0, "short games with mixed play: no value to lean on")
    else:
        yield AutoValue(f"{ALGORITHM}.lambda_", 0.95, "between one step and the whole game")


def time_limits(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The end of a game of several seats at its time limit, since its result is that of the moment.

    Values expected after the limit would be learnt nowhere: no decision is ever made from there. Where seats drift to
    places that they only reach at the end, such values feed on themselves and grow without bound. So they do where a
    lone seat sees that its time is up.
    """
    if situation.game.spec.num_seats > 1:
        yield AutoValue("learner.bootstrap_time_limits", False, "a game's result counts when its time is up")
    elif situation.game.limit_is_shown:
        yield AutoValue("learner.bootstrap_time_limits", False, "the seat sees when its time is up")
    else:
        yield AutoValue("learner.bootstrap_time_limits", True, "a lone seat's task continues")


def value_scale(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A value whose scale is learnt follows it within a short budget, and leaves the trunk to the policy."""
    if draft.value("network.value_output") == "popart":
        yield AutoValue("learner.value_rate", 0.01, "the scale of returns is found in a hundred updates")
        yield AutoValue(f"{ALGORITHM}.value_cost", 0.5, "policy and value share their trunk")


def value_start(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The first moments of the value's scale where all returns lie far from 0: those of random play.

    On its way to a mean far from 0 the running deviation is a part of the distance, beside which what the game is about
    vanishes: Kuhn poker with 100 chips for everybody was eight times as exploitable.
    """
    game = situation.game
    if draft.value("network.value_output") != "popart" or not game.final_only or game.spec.seat_groups:
        return
    scales = [_scale_of_seat(situation, draft, seat) for seat in range(len(game.returns))]
    means = [scale * one.mean for scale, one in zip(scales, game.returns, strict=True)]
    squares = [(scale * one.deviation) ** 2 for scale, one in zip(scales, game.returns, strict=True)]
    mean, square = math.fsum(means) / max(len(means), 1), math.fsum(squares) / max(len(squares), 1)
    deviation = math.sqrt(square + math.fsum((one - mean) ** 2 for one in means) / max(len(means), 1))
    if abs(mean) > FAR_FROM_ZERO * deviation > 0.0:
        moments = rounded_moments(mean, deviation)
        yield AutoValue("network.value_moments", moments, f"random play returned {number_text(mean, 4)} on average")


def entropy(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The bonus for entropy: its size in nats is what counts, so that many legal actions want less of it."""
    game = situation.game
    if not game.is_competitive:
        start, share, why = (0.02 if game.log_legal else 0.01), 0.1, "one team: exploration alone"
    elif game.spec.actions.kind == "box":
        start, share, why = 0.01, 0.1, "the entropy of a box has no bound"
    elif _is_mixed(situation):
        start, share, why = 0.3, MIXED_END, "play must stay mixed"
    elif _is_drawn_out(situation):
        start, share, why = LONG_ENTROPY, 0.25, "what one action of a long game brings is small against chance"
    else:
        settled = {"epochs": epochs_of(draft), "batch": decisions_of_update(draft)}
        decisions = situation.least_decisions(draft.whole("actors.num_envs"), **settled)
        start = 0.4 * min((decisions / FULL_ENTROPY_DECISIONS) ** ENTROPY_GROWTH, 1.0)
        start = max(start, MIN_FIRST_COST)
        share, why = (
            0.25,
            f"at least {number_text(decisions, 2)} decisions: with less entropy, self-play repeats a few lines",
        )
        if situation.has_budget and not situation.is_exact and not draft.has("learner.entropy_cost"):
            expected = float(f"{situation.decisions(draft.whole('actors.num_envs'), **settled):.2g}")
            yield AutoValue(EXPECTED, int(expected), "a guess for learner.entropy_cost, counted again in the run")
    if game.log_legal > 0.0 and game.is_competitive:
        factor = min(2.0 / max(game.log_legal, 1.0), 1.0)
        start, why = start * factor, f"{why}; {game.legal:.0f} legal actions"
    yield AutoValue("learner.entropy_cost", round(start, 4), why)
    end = round(draft.number("learner.entropy_cost") * share, 5)
    yield AutoValue("learner.entropy_cost_end", end, f"falls to {share:g} of the first")


def reward_scales(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Rewards of about 1 where they are tiny or huge, or where seat groups earn on scales of their own.

    Where returns lie far from 0 beside what they differ by, it is their deviation that is brought there.

    A fresh network errs by about a tenth: beside tiny returns its errors hide them for long. The first errors beside
    huge returns have squares beyond float32. Groups share the running scales of values and advantages, so that the
    group that earns little would learn nothing.
    """
    game = situation.game
    sizes = [_size_of_returns(game, seats) for seats in _seats_by_group(game)]
    known = [size for size in sizes if size > 0.0]
    usual = not known or (min(known) >= SMALL_RETURN and max(known) <= LARGE_RETURN)
    if usual and max(known, default=0.0) <= UNEVEN_RETURNS * min(known, default=0.0):
        why = "no returns are tiny or huge, nor those of one seat group beside another's"
        yield AutoValue("learner.reward_scales", [], why)
        return
    scales = [10.0 ** -math.ceil(math.log10(size) - 1e-6) if size > 0.0 else 1.0 for size in sizes]
    found = ", ".join(number_text(size, 2) for size in sizes)
    yield AutoValue("learner.reward_scales", scales, f"random play returned up to {found}")


def _seats_by_group(game: GameFacts) -> list[Sequence[int]]:
    """Seats of each seat group; all seats where there are no groups."""
    return [group.seats for group in game.spec.seat_groups] or [range(game.spec.num_seats)]


def _size_of_returns(game: GameFacts, seats: Sequence[int]) -> float:
    """Size of what is at stake for some seats under random play, 0 if unknown.

    The largest return, rare ones aside where others are not 0. Of returns far from 0 the largest deviation, as far as
    float32 can tell such returns apart.
    """
    returns = [game.returns[seat] for seat in seats if seat < len(game.returns)]
    if returns and all(abs(one.mean) > FAR_FROM_ZERO * one.deviation > 0.0 for one in returns):
        return max(max(one.deviation, FLOAT32_STEP * abs(one.mean)) for one in returns)
    usual = max((max(abs(one.p5), abs(one.p95)) for one in returns), default=0.0)
    return usual or max((max(abs(one.low), abs(one.high)) for one in returns), default=0.0)


def _scale_of_seat(situation: Situation, draft: Draft, seat: int) -> float:
    """The factor of a seat's rewards."""
    scales = draft.value("learner.reward_scales")
    factors = scales if isinstance(scales, Sequence) else ()
    for place, seats in enumerate(_seats_by_group(situation.game)):
        if seat in seats and factors:
            factor = factors[min(place, len(factors) - 1)]
            return float(factor) if isinstance(factor, int | float) else 1.0
    return 1.0


def advantage_floor(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A floor for the scale of advantages, from what is at stake under random play."""
    game = situation.game
    scales = [_scale_of_seat(situation, draft, seat) for seat in range(len(game.returns))]
    if game.is_competitive:
        deviations = [scale * one.deviation for scale, one in zip(scales, game.returns, strict=True)]
        deviation = min((one for one in deviations if one > 0.0), default=0.0)
        if game.spec.actions.kind == "box":  # each of many forces brings a small part of what the game pays
            deviation /= math.sqrt(max(game.decisions.mean / LONG_GAME, 1.0))
        floor, why = STAKES_SHARE * deviation, f"returns of random play deviate by {number_text(deviation)}"
    else:
        length = max(game.decisions.mean, 1.0)
        means = [scale * abs(one.mean) for scale, one in zip(scales, game.returns, strict=True)]
        reward = max(means, default=0.0) / length
        horizon = min(length, 1.0 / max(1.0 - draft.number("learner.gamma"), 1e-6))
        floor, why = (
            REWARD_SHARE * reward * horizon,
            f"{number_text(reward, 2)} a decision over {horizon:.0f} decisions",
        )
    yield AutoValue("learner.advantage_floor", float(f"{floor:.3g}"), why)


def magnet(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A pull towards the target network where best replies chase each other."""
    if not _is_mixed(situation):
        yield AutoValue(
            f"{ALGORITHM}.magnet_cost", 0.0, "nothing hidden, one seat at a time, or skill over a long game"
        )
        return
    yield AutoValue(f"{ALGORITHM}.magnet_cost", 0.1, "damps the chase of best replies")
    if draft.number(f"{ALGORITHM}.magnet_cost") > 0.0 or draft.value(f"{ALGORITHM}.kind") == "appo":
        yield AutoValue("learner.target_every", 1, "the copy moves with every step")
        yield AutoValue("learner.target_rate", 0.02, "the copy follows over fifty steps")


def average(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The moving average of the weights, over more of the training where play goes in circles."""
    if situation.game.is_competitive and situation.game.play == "one_shot":
        yield AutoValue("learner.ema_share", 0.3, "the average spans whole circles of best replies")
    else:
        yield AutoValue("learner.ema_share", 0.1, "the average is recent")


def learning_rate(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The step size and its decay."""
    epochs = draft.value(f"{ALGORITHM}.epochs")
    several = isinstance(epochs, int) and epochs > 1
    start = 1e-3 if several or draft.value("network.core") != "none" else 2e-3
    why = "several steps on each batch" if several else "one step on each batch"
    yield AutoValue("learner.learning_rate", start, why)
    ratio, why = (50.0, "mixed play settles only as steps vanish") if _is_mixed(situation) else (20.0, "falls to 1/20")
    end = draft.number("learner.learning_rate") / ratio
    yield AutoValue("learner.learning_rate_end", float(f"{end:.3g}"), why)


def _is_mixed(situation: Situation) -> bool:
    """True if good play may have to be mixed: something is hidden, or seats act at once a few times."""
    game = situation.game
    return game.is_competitive and situation.is_mixed and not _is_drawn_out(situation)


def _is_drawn_out(situation: Situation) -> bool:
    """True if seats act at once, many times a game, where skill counts for more than being unpredictable.

    The forces of a box are steered by skill, whoever wins. Elsewhere the rewards on the way tell: in a pursuit they
    depend on where everybody stands, in a guessing game on what both choose at that moment, however long it takes.
    """
    game = situation.game
    if not game.is_competitive or not game.is_simultaneous or game.decisions.mean < LONG_GAME:
        return False
    if game.spec.actions.kind == "box":
        return True
    if game.final_only or game.wins_only:
        return False
    if game.interaction is None:
        return game.spec.num_seats > 2 and not game.zero_sum
    return game.interaction <= GUESSING_SHARE


RULES = (
    algorithm,
    discount,
    time_limits,
    value_scale,
    reward_scales,
    value_start,
    advantage_floor,
    magnet,
    average,
    learning_rate,
    batch,
    entropy,
)

"""Rules of the network: encoder, widths, memory, and the output of the value."""

from __future__ import annotations

import math
from collections.abc import Iterator

from league.agents.nets.config import MIN_DEVIATION
from league.config.auto.draft import AutoValue, Draft
from league.config.auto.situation import Situation, rounded_moments
from league.envs.facts.game_facts import LARGE_INPUT
from league.envs.facts.number_sizes import NumberSize
from league.envs.facts.pictures import PICTURE_RANK, picture_shape
from league.envs.protocol import SEAT_GROUP, ArraySpec

IMAGE_SIDE = 8
"""Height and width from which a field of rank 3 counts as a picture; a smaller board is read faster flat."""
LARGE_IMAGE_SIDE = 32
"""Height and width from which pictures are cut down by every layer."""
RESNET_BUDGET = 100_000.0
"""Core-seconds from which a residual network, at 6 ms to learn from a decision, sees ten million of them."""
MANY_NUMBERS = 1024
"""Numbers in a whole observation beyond which it is large."""
LARGE_SHARE = 0.01
"""Of a field's numbers: from here on it counts as one of large numbers."""
LONG_BUDGET = 1500.0
"""Core-seconds from which a wider network has the time to pay off."""
AS_IT_IS = [0.0, 1.0]
"""Moments of a number that is left alone."""
ROUNDING = 1e-6
"""Deviation of a number, beside its size, up to which it only varies by rounding."""
SMALL_DEVIATION, SMALL_RANGE = 0.1, 0.5
"""Deviation and range of a number up to which it is hardly seen, as multiples of 1 plus the size of its mean."""
RECALL = "information_state"
"""Field of games whose observation holds everything that the seat has seen and done."""
MEMORY_DECISIONS = 6.0
"""Decisions of a seat in an episode from which memory of hidden things pays off."""
CLOCK_DECISIONS = 20.0
"""Decisions of a seat in the longest episode up to which it counts how many are left; in longer ones the end is far
from most of them."""


def encoder(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The encoder by the kinds of the observation's fields."""
    fields = {name: spec for name, spec in situation.game.spec.observations.items() if name != SEAT_GROUP}
    pictures = [picture_shape(spec.shape) for spec in fields.values() if _is_picture(spec)]
    are_boards = any(min(shape[:2]) < LARGE_IMAGE_SIDE for shape in pictures)
    is_short = (situation.core_seconds or LONG_BUDGET) < LONG_BUDGET
    entities = [name for name, spec in fields.items() if len(spec.shape) == 2 and f"{name}_mask" in fields]
    if situation.game.spec.actions.points_at and any(situation.game.spec.actions.points_at):
        yield AutoValue("network.encoder", "entities" if len(fields) == 1 else "dict", "actions point at entities")
    elif entities:
        yield AutoValue("network.encoder", "dict", f"{entities[0]} is a set of entities")
    elif are_boards and is_short and _size(situation) <= MANY_NUMBERS:
        why = f"{_size(situation)} numbers, which convolutions would read for most of a short budget"
        yield AutoValue("network.encoder", "mlp", why)
    elif len(fields) > 1 and are_boards:
        yield AutoValue("network.encoder", "dict", "pictures beside other numbers")
    elif pictures and not are_boards:
        deep = situation.core_seconds is not None and situation.core_seconds >= RESNET_BUDGET
        why = f"pictures of {pictures[0][0]} x {pictures[0][1]}"
        if deep:
            yield AutoValue("network.encoder", "impala_resnet", f"{why}, and a long budget")
        else:
            yield AutoValue("network.encoder", "nature_cnn", f"{why}; a residual network takes ten times as long")
    elif pictures:
        yield AutoValue("network.encoder", "conv", f"boards of {pictures[0][0]} x {pictures[0][1]}")
    else:
        yield AutoValue("network.encoder", "mlp", f"{_size(situation)} numbers in all")


def input_moments(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The moments of numbers that a network of the usual weights would hardly see; [0, 1] for all others.

    They are those of random play. What good play leads to may lie far beyond, so that logarithms follow.
    """
    if draft.has("network.input_moments"):
        return
    found = {name: [_moments(size) for size in sizes] for name, sizes in situation.game.sizes.items()}
    scaled = {name: moments for name, moments in found.items() if any(pair != AS_IT_IS for pair in moments)}
    if scaled:
        name, moments = next(iter(scaled.items()))
        count = sum(pair != AS_IT_IS for pair in moments)
        why = f"{count} of the {len(moments)} numbers of {name} are small, or vary little beside their mean"
        yield AutoValue("network.input_moments", scaled, why)
        yield AutoValue("network.input_scaling", "symlog", "good play may lead far from the numbers of random play")


def _moments(size: NumberSize) -> list[float]:
    """Mean and deviation to scale a number by, in two digits of the deviation; `AS_IT_IS` where it is of usual size."""
    largest = max(abs(size.low), abs(size.high))
    if size.whole and largest <= LARGE_INPUT:
        return AS_IT_IS
    beside = 1.0 + abs(size.mean)
    if size.deviation <= max(ROUNDING * largest, MIN_DEVIATION):
        return [size.mean, float(f"{largest:.2g}")] if largest > LARGE_INPUT else AS_IT_IS
    if size.deviation >= SMALL_DEVIATION * beside or size.high - size.low >= SMALL_RANGE * beside:
        return AS_IT_IS
    return rounded_moments(size.mean, size.deviation)


def input_scaling(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Large numbers by their logarithm, images apart, whose bytes an encoder of images scales itself."""
    fields = situation.game.spec.observations
    images = {name for name, one in fields.items() if len(one.shape) == 3 and one.dtype == "uint8"}
    scaled = set() if draft.value("network.encoder") == "mlp" else images
    large = [name for name, one in situation.game.ranges.items() if one.large > LARGE_SHARE and name not in scaled]
    if large:
        yield AutoValue("network.input_scaling", "symlog", f"{large[0]} holds large numbers")
    else:
        yield AutoValue("network.input_scaling", "none", "no field holds large numbers")


def widths(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Wider layers where observations are large and the budget is long."""
    size, budget = _size(situation), situation.core_seconds
    long = budget is not None and budget >= LONG_BUDGET
    if long or size > MANY_NUMBERS:
        why = "a long budget" if long else f"{size} numbers are a large observation"
        yield AutoValue("network.hidden", [256, 256], why)
    else:
        yield AutoValue("network.hidden", [128, 128], f"{size} numbers, a short budget")


def memory(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A recurrent core where the game hides something and lasts, or where the past was seen to count.

    The step before where that tells what is hidden, and a clock where all that is hidden is the time.
    """
    game = situation.game
    if RECALL in game.spec.observations:
        yield AutoValue("network.core", "none", f"the field {RECALL} holds all that the seat knew")
    elif game.past_counts and (game.spec.num_seats == 1 or game.decisions.mean >= MEMORY_DECISIONS):
        yield AutoValue("network.core", "lstm", "what follows a decision depends on more than is seen")
    elif situation.kind.hides and game.decisions.mean >= MEMORY_DECISIONS:
        yield AutoValue("network.core", "lstm", f"hidden information over {game.decisions.mean:.0f} decisions")
    elif game.last_step_counts:
        yield AutoValue("network.core", {"kind": "stack", "steps": 1}, "the step before tells what is not seen")
    elif game.time_is_hidden and game.decisions.high <= CLOCK_DECISIONS:
        decisions = max(round(game.decisions.high), 1)
        why = f"a game ends after {decisions} decisions of a seat, and no observation shows how many are left"
        yield AutoValue("network.core", {"kind": "clock", "decisions": decisions}, why)
    else:
        why = "games are short" if situation.kind.hides else "a seat sees what it needs"
        if game.spec.num_seats == 1:
            why = "random play did not show that the past counts; lstm if it does"
        yield AutoValue("network.core", "none", why)


def value_output(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A bounded value where returns are known to lie in [-1, 1], else one that follows their scale."""
    low, high = situation.game.return_bounds or (-math.inf, math.inf)
    known = situation.game.spec.return_range is not None or situation.game.wins_only
    if draft.has("learner.value_normalisation"):
        output = "popart" if draft.value("learner.value_normalisation") == "popart" else "linear"
        yield AutoValue("network.value_output", output, "as learner.value_normalisation says")
    elif known and low >= -1.0 and high <= 1.0:
        yield AutoValue("network.value_output", "tanh", "returns lie in [-1, 1]")
    else:
        yield AutoValue("network.value_output", "popart", "returns have a scale of their own")
    settled = draft.value("network.value_output")
    normalisation = "popart" if settled == "popart" else "none"
    yield AutoValue("learner.value_normalisation", normalisation, f"goes with network.value_output {settled}")


def _is_picture(spec: ArraySpec) -> bool:
    """True for a picture: large enough, and square, or of bytes as screens are."""
    if len(spec.shape) != PICTURE_RANK:
        return False
    height, width, _ = picture_shape(spec.shape)
    return min(height, width) >= IMAGE_SIDE and (height == width or spec.dtype == "uint8")


def _size(situation: Situation) -> int:
    """Numbers in a whole observation of one seat."""
    return sum(math.prod(spec.shape) for spec in situation.game.spec.observations.values())


RULES = (encoder, input_moments, input_scaling, widths, memory, value_output)

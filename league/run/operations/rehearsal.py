"""Lets the league decide on the commands of a plan without doing them: a plan knows what the deed would refuse."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from league.core.league import apply, decide
from league.core.state.commands import Command
from league.core.state.state import LeagueState


def rehearse(state: LeagueState, commands: Sequence[Command]) -> None:
    """Decide on commands one after the other, each after those before it; the state stays as it is.

    Raises:
      Refused: one of them does not fit the league as it stands.
    """
    rng, later = np.random.default_rng(0), state
    for number, command in enumerate(commands):
        if number == 1:  # a copy is dear, and most plans are one command
            later = copy.deepcopy(state)
            for event in decide(later, commands[0], rng):
                apply(later, event)
        events = decide(later, command, rng)
        if later is not state:
            for event in events:
                apply(later, event)

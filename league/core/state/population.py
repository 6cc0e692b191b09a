"""Every policy of the league under a number, with the facts that matchmaking asks of thousands of them at once.

Shape letter: P policies (players, snapshots and fixed opponents, in the order in which they came).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.state.growable_array import GrowableArray

PLAYER, SNAPSHOT, FIXED_OPPONENT = 0, 1, 2
NO_OWNER = -1
FROZEN = -1
"""Stands for SNAPSHOT and FIXED_OPPONENT together where numbers are asked for by kind."""


@dataclass
class Population:
    """Names and facts of all policies.

    Fields:
      names: number -> policy id. index: policy id -> number.
      roles: role number -> role, in the order in which they came.
      kind: int8 [P], PLAYER (learns), SNAPSHOT of one, or FIXED_OPPONENT, a bot or imported policy (all but players
        frozen).
      owner: int32 [P], number of the player that a snapshot was taken of, a player's own number, NO_OWNER for a fixed
        opponent.
      role: int16 [P], role number of the player or of the snapshot's player, -1 for a fixed opponent.
      staleness_clock: float64 [P], trained steps that the weights have moved in all, the clock by which evidence ages;
        falling back to a checkpoint moves them too. 0 if frozen.
      absent: number -> why that snapshot or fixed opponent cannot be had now, or that player has left; it is not met
        meanwhile.

    What is asked for at every lease is kept ready by kind, role and owner, without the absent.
    """

    names: dict[int, str] = field(default_factory=dict)
    roles: dict[str, int] = field(default_factory=dict)
    kind: GrowableArray = field(default_factory=lambda: GrowableArray("int8"))
    owner: GrowableArray = field(default_factory=lambda: GrowableArray("int32"))
    role: GrowableArray = field(default_factory=lambda: GrowableArray("int16"))
    staleness_clock: GrowableArray = field(default_factory=lambda: GrowableArray("float64"))
    absent: dict[int, str] = field(default_factory=dict)
    index: dict[str, int] = field(init=False)
    _numbers: dict[tuple[int, int | None], GrowableArray] = field(init=False, repr=False, default_factory=dict)
    _snapshots_of: dict[int, GrowableArray] = field(init=False, repr=False, default_factory=dict)
    _frozen: GrowableArray = field(init=False, repr=False, default_factory=lambda: GrowableArray("int64"))

    def __post_init__(self) -> None:
        self.index = {name: number for number, name in self.names.items()}
        self._note_all()

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, *, kind: int, owner: int | None = None, role: str | None = None) -> int:
        """Number a new policy. owner: None for a fixed opponent and for a player, which owns itself."""
        assert name not in self.index, f"policy {name} is there already"
        number = len(self.names)
        own = number if kind == PLAYER else NO_OWNER
        self.names[number] = name
        self.index[name] = number
        self.kind.append(kind)
        self.owner.append(own if owner is None else owner)
        self.role.append(-1 if role is None else self.roles.setdefault(role, len(self.roles)))
        self.staleness_clock.append(0.0)
        self._note(number)
        return number

    def set_aside(self, number: int, *, reason: str) -> None:
        """Leave a frozen policy, or a player that has retired, out of everything that is to be met."""
        self.absent[number] = reason
        self._note_all()

    def take_back(self, number: int) -> None:
        """Undo `set_aside`."""
        del self.absent[number]
        self._note_all()

    def players(self, role: str | None = None) -> NDArray[np.int64]:
        """Numbers of the learning players (of one role), in order."""
        return self._of_kind(PLAYER, role)

    def snapshots(self, role: str | None = None) -> NDArray[np.int64]:
        """Numbers of the snapshots (of players of one role) that can be met, oldest first."""
        return self._of_kind(SNAPSHOT, role)

    def snapshots_of(self, player: int) -> NDArray[np.int64]:
        """Numbers of one player's snapshots that can be met, oldest first."""
        return _numbers_in(self._snapshots_of.get(player))

    def frozen(self) -> NDArray[np.int64]:
        """Numbers of all policies that never change, those included that cannot be met now: games with them count."""
        return _numbers_in(self._frozen)

    def frozen_present(self) -> NDArray[np.int64]:
        """Numbers of all policies that never change and can be met."""
        return self._of_kind(FROZEN, None)

    def _of_kind(self, kind: int, role: str | None) -> NDArray[np.int64]:
        if role is None:
            return _numbers_in(self._numbers.get((kind, None)))
        number = self.roles.get(role)
        return NONE if number is None else _numbers_in(self._numbers.get((kind, number)))

    def _note_all(self) -> None:
        """Rebuild all groups, in the order in which the policies came."""
        self._numbers, self._snapshots_of, self._frozen = {}, {}, GrowableArray("int64")
        for number in self.names:
            self._note(number)

    def _note(self, number: int) -> None:
        """Put a policy into the groups that it belongs to."""
        if self.kind.values[number] != PLAYER:
            self._frozen.append(number)
        if number in self.absent:
            return
        kind, role = int(self.kind.values[number]), int(self.role.values[number])
        groups: list[tuple[int, int | None]] = [(kind, None), (kind, role)]
        if kind != PLAYER:
            groups.append((FROZEN, None))
        for group in groups:
            self._numbers.setdefault(group, GrowableArray("int64")).append(number)
        if kind == SNAPSHOT:
            self._snapshots_of.setdefault(int(self.owner.values[number]), GrowableArray("int64")).append(number)


NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
NONE.flags.writeable = False


def _numbers_in(group: GrowableArray | None) -> NDArray[np.int64]:
    """A read-only view."""
    if group is None:
        return NONE
    view = group.values
    view.flags.writeable = False
    return view

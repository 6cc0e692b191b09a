"""Every policy of the league under a number, with the facts that matchmaking asks of thousands of them at once.

Shape letter: P policies (players, snapshots and bots, in the order in which they came).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.columns import Column

PLAYER, SNAPSHOT, BOT = 0, 1, 2
NO_OWNER = -1


@dataclass
class Population:
    """Names and facts of all policies.

    Fields:
      names: number -> policy id. index: policy id -> number.
      roles: role number -> role, in the order in which they came.
      kind: int8 [P], PLAYER (learns), SNAPSHOT or BOT (both frozen).
      owner: int32 [P], number of the player that a snapshot was taken of, a player's own number, NO_OWNER for a bot.
      role: int16 [P], role number of the player or of the snapshot's player, -1 for a bot.
      moved: float64 [P], trained steps that the weights have moved in all, the clock by which evidence ages; falling
        back to a checkpoint moves them too. 0 if frozen.
    """

    names: dict[int, str] = field(default_factory=dict)
    roles: dict[str, int] = field(default_factory=dict)
    kind: Column = field(default_factory=lambda: Column("int8"))
    owner: Column = field(default_factory=lambda: Column("int32"))
    role: Column = field(default_factory=lambda: Column("int16"))
    moved: Column = field(default_factory=lambda: Column("float64"))
    index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.index = {name: number for number, name in self.names.items()}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, *, kind: int, owner: int | None = None, role: str | None = None) -> int:
        """Number a new policy. owner: None for a bot and for a player, which owns itself."""
        assert name not in self.index, f"policy {name} is there already"
        number = len(self.names)
        own = number if kind == PLAYER else NO_OWNER
        self.names[number] = name
        self.index[name] = number
        self.kind.append(kind)
        self.owner.append(own if owner is None else owner)
        self.role.append(-1 if role is None else self.roles.setdefault(role, len(self.roles)))
        self.moved.append(0.0)
        return number

    def players(self, role: str | None = None) -> NDArray[np.int64]:
        """Numbers of the learning players (of one role), in order."""
        return self._select(PLAYER, role)

    def snapshots(self, role: str | None = None) -> NDArray[np.int64]:
        """Numbers of the snapshots (of players of one role), oldest first."""
        return self._select(SNAPSHOT, role)

    def snapshots_of(self, player: int) -> NDArray[np.int64]:
        """Numbers of one player's snapshots, oldest first."""
        return np.flatnonzero((self.kind.values == SNAPSHOT) & (self.owner.values == player))

    def frozen(self) -> NDArray[np.int64]:
        """Numbers of all policies that never change."""
        return np.flatnonzero(self.kind.values != PLAYER)

    def is_frozen(self, number: int) -> bool:
        """Whether a policy never changes."""
        return bool(self.kind.values[number] != PLAYER)

    def _select(self, kind: int, role: str | None) -> NDArray[np.int64]:
        chosen = self.kind.values == kind
        if role is not None:
            chosen = chosen & (self.role.values == self.roles.get(role, -2))
        return np.flatnonzero(chosen)

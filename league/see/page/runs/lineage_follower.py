"""The lineage of a run that is followed: folded once beside the requests, then extended by each new event."""

from __future__ import annotations

import threading
from typing import cast
from weakref import WeakKeyDictionary

from league.core.metagame.lineage import Lineage, LineageFold
from league.core.state.events import Event
from league.see.page.runs.background import Computed
from league.see.page.runs.journal_fold import open_journal
from league.see.page.runs.opened_run import OpenedRun
from league.store.journal_reader import JournalHead
from league.store.run_folder import RunFolder

_followers: WeakKeyDictionary[OpenedRun, LineageFollower] = WeakKeyDictionary()
_lock = threading.Lock()


class LineageFollower:
    """Folds the lineage of one journal; a journal that was taken back is folded again from its start."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._fold = LineageFold()
        self._head = JournalHead(0, "")

    def extend(self) -> Lineage:
        """Fold the events that are new.

        Raises:
          JournalError, StorageError: the journal cannot be read.
        """
        with open_journal(self._folder) as journal, journal.one_moment():
            head = journal.head()
            if head.seq < self._head.seq or journal.head_at(self._head.seq).chain != self._head.chain:
                self._fold, self._head = LineageFold(), JournalHead(0, "")
            for _, event in journal.replay(from_seq=self._head.seq + 1, to_seq=head.seq):
                self._fold.take(cast(Event, event))
            self._head = head
        return self._fold.lineage


def lineage_computed(run: OpenedRun) -> Computed[Lineage]:
    """The newest lineage of a run, which is extended in the background."""
    with _lock:
        follower = _followers.get(run)
        if follower is None:
            follower = _followers[run] = LineageFollower(run.folder)
    return run.background("lineage", lambda: None, lambda _: follower.extend())

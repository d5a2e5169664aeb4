"""What a search has spent: each item goes to the store's ledger at once."""

from collections.abc import Callable

from optimizer.spending import Spending
from optimizer.store import Store


class Account:
    """The ledger of one search, that of earlier processes included."""

    def __init__(self, store: Store, search_id: int, now_s: Callable[[], float]) -> None:
        self._store = store
        self._search_id = search_id
        self._now_s = now_s
        self.spent = store.spent(search_id)

    def add(self, what: Spending, *, source: str) -> None:
        """Write down what was spent, and by whom; nothing is not written.

        Raises:
            StoreError: The database is away.
        """
        if what == Spending():
            return
        self._store.spend(self._search_id, what, source=source, now=self._now_s())
        self.spent += what

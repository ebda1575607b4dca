"""What tabs with a list of rows have in common."""

from __future__ import annotations

from textual.widget import Widget

from interpose.view.listing import KeyOf, Listing
from interpose.view.panes.pane import Pane


class ListPane(Pane):
    """A tab with a list; `key_of` tells rows apart when they are read again."""

    def __init__(self, key_of: KeyOf) -> None:
        super().__init__()
        self._listing = Listing(key_of, id=f"shown-{self.NAME}")

    @property
    def body(self) -> Widget:
        return self._listing

    @property
    def searched(self) -> Listing:
        return self._listing

    @property
    def told(self) -> str:
        return self._listing.told

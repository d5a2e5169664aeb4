"""Which kind of memory the judge lends to candidates on a device."""

from dataclasses import replace

from optimizer.evaluate.keeping import KeeperLender
from optimizer.evaluate.lending import FileLender
from optimizer.evaluate.memory import SharedFolder
from optimizer.evaluate.process import Place
from optimizer.evaluate.tray import Lender


def make_lender(place: Place, shared: SharedFolder) -> Lender:
    """Return what lends memory in a place.

    Args:
        place: Where workers run.
        shared: A folder that workers see.
    """
    folder = shared.folder("trays")
    if place.device != "cuda":
        return FileLender(folder)
    private = SharedFolder()
    limits = replace(place.limits, read=(), fill=(), write=(folder, private.path))
    return KeeperLender(limits, folder, private)

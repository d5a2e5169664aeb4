"""Id mapping: the place of each id in a sorted table, counted from 1; 0 where it is absent.

Example: ids [100, 300, 500, 200, 999] over the table [100, 200, 300, 400, 500] give
[1, 3, 5, 2, 0].
"""

import torch
from torch import Tensor


def map_id(ids: Tensor, table: Tensor) -> Tensor:
    """Return the places."""
    place = torch.bucketize(ids, table).clamp(max=table.numel() - 1)
    found = table.gather(0, place) == ids
    return torch.where(found, place + 1, 0)


def by_searchsorted(ids: Tensor, table: Tensor) -> Tensor:
    """Return the same with the other search and with arithmetic in place of a choice."""
    place = torch.searchsorted(table, ids).clamp_(max=table.numel() - 1)
    found = table[place] == ids
    return place.add_(1).mul_(found)

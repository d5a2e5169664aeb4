"""Truncation of a nested jagged batch: the first `max_events` events of each user stay.

A user has `outer_lengths[user]` events. In feature f, event e has `inner_lengths[f][e]` values,
which stand one after another in `values[f]`.

Example: outer lengths [3, 4, 1] with at most 2 events give [2, 2, 1]; a feature with inner lengths
[1, 0, 2, 0, 3, 1, 1, 1] and values 1..9 keeps [1, 0, 0, 3, 1] and [1, 4, 5, 6, 9].
"""

import torch
from torch import Tensor

Jagged = tuple[Tensor, list[Tensor], list[Tensor]]


def batch_event_truncate(
    outer_lengths: Tensor, inner_lengths: list[Tensor], values: list[Tensor], max_events: int
) -> Jagged:
    """Return the kept outer lengths, inner lengths and values, feature by feature."""
    keep = _kept_events(outer_lengths, inner_lengths[0].shape[0], max_events)
    kept_lengths = [lengths[keep] for lengths in inner_lengths]
    kept_values = [
        of_feature[torch.repeat_interleave(keep, lengths, output_size=of_feature.shape[0])]
        for lengths, of_feature in zip(inner_lengths, values, strict=True)
    ]
    return outer_lengths.clamp(max=max_events), kept_lengths, kept_values


def concatenated(
    outer_lengths: Tensor, inner_lengths: list[Tensor], values: list[Tensor], max_events: int
) -> Jagged:
    """Return the same with all features side by side, so that few large steps do the work."""
    events = inner_lengths[0].shape[0]
    keep = _kept_events(outer_lengths, events, max_events)
    lengths = torch.stack(inner_lengths)
    together = torch.cat(values)
    keep_value = torch.repeat_interleave(
        keep.repeat(len(values)), lengths.flatten(), output_size=together.shape[0]
    )
    kept_lengths = lengths[:, keep]
    kept_values = together[keep_value].split(kept_lengths.sum(dim=1).tolist())
    return outer_lengths.clamp(max=max_events), list(kept_lengths.unbind()), list(kept_values)


def copied_when_short(
    outer_lengths: Tensor, inner_lengths: list[Tensor], values: list[Tensor], max_events: int
) -> Jagged:
    """Return the same, by a plain copy where no user has too many events."""
    if bool((outer_lengths <= max_events).all()):
        lengths = [of_feature.clone() for of_feature in inner_lengths]
        return outer_lengths.clone(), lengths, [of_feature.clone() for of_feature in values]
    return batch_event_truncate(outer_lengths, inner_lengths, values, max_events)


def _kept_events(outer_lengths: Tensor, events: int, max_events: int) -> Tensor:
    """Return for each event whether it is among its user's first."""
    starts = outer_lengths.cumsum(0) - outer_lengths
    start = torch.repeat_interleave(starts, outer_lengths, output_size=events)
    return torch.arange(events, device=outer_lengths.device) - start < max_events

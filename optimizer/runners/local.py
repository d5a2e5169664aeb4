"""Trials on this machine."""

from optimizer.evaluate.evaluator import Evaluator


class LocalRunner(Evaluator):
    """The judge itself, on the machine that asks: a `Runner` with nothing between."""

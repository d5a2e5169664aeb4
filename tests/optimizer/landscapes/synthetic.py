"""Landscapes made by formulas: smooth, rugged, with cliffs, and one like a tiled product's."""

import math
import random
from collections.abc import Callable, Mapping

from knowledge.outcome import Failed, Outcome, PeerTime
from operator_registry.spec import Workload
from optimizer.candidate import Choice
from optimizer.landscapes.landscape import Failures, Landscape, find_near_share
from optimizer.landscapes.space import Structure
from optimizer.plan import Launch, Plan
from tests.makers import ENVIRONMENT

Formula = Callable[[Choice, random.Random], float | None]
"""Milliseconds of a point, None where it can't be built."""
TOO_LARGE = Failed(stage="build", log="k wants too many bytes of shared memory")
WIDE: Mapping[str, tuple[int, ...]] = {
    "BLOCK": (16, 32, 64, 128, 256),
    "TILE": (16, 32, 64, 128, 256),
    "DEPTH": (16, 32, 64, 128),
    "WARPS": (1, 2, 4, 8),
    "STAGES": (1, 2, 3),
}
"""1,200 points."""
PRODUCT: Mapping[str, tuple[int, ...]] = {
    "BLOCK_M": (16, 32, 64, 128, 256),
    "BLOCK_N": (16, 32, 64, 128, 256),
    "BLOCK_K": (16, 32, 64, 128),
    "WARPS": (2, 4, 8),
    "STAGES": (1, 2, 3, 4),
}
"""1,200 points."""


def make_structure(name: str, tunables: Mapping[str, tuple[int, ...]]) -> Structure:
    code = f'"""{name}."""\n\nTUNABLES = {dict(tunables)}\n'
    plan = Plan(language="triton", steps=(Launch(kernel="k", arguments=("x",)),))
    return Structure(name=name, code=code, plan=plan)


def make_landscape(
    name: str, *spaces: tuple[Mapping[str, tuple[int, ...]], Formula], seed: int = 0
) -> Landscape:
    """Return a landscape with a structure for each formula."""
    structures = tuple(make_structure(f"s{n}", t) for n, (t, _) in enumerate(spaces))
    times: list[float | None] = []
    for structure, (_, formula) in zip(structures, spaces, strict=True):
        rng = random.Random(f"{seed}/{name}/{structure.name}")  # noqa: S311 - no secret
        times += [formula(chosen, rng) for chosen in structure.choices()]
    failed = tuple(place for place, ms in enumerate(times) if ms is None)
    failures = (Failures(outcome=TOO_LARGE, points=failed),) if failed else ()
    rounded = [None if ms is None else float(f"{ms:.5g}") for ms in times]
    return Landscape(
        name=name,
        operator="scale",
        operator_digest="0" * 64,
        workload=Workload(name="w", sizes={"rows": 64}),
        hardware="h200",
        environment=ENVIRONMENT,
        judge_version="2",
        commit="abc",
        baseline=PeerTime(name="reference/eager", device_ms=1.0, call_ms=1.0),
        near_share=find_near_share(rounded, failures),
        structures=structures,
        device_ms=tuple(rounded),
        failures=failures,
    )


def bowl(**centre: float) -> Formula:
    """Time grows with the square of each tunable's distance, in doublings, from a best value."""

    def formula(chosen: Choice, rng: random.Random) -> float:
        away = (math.log2(chosen[name]) - math.log2(best) for name, best in centre.items())
        return 0.1 * math.exp(sum(0.12 * d * d for d in away))

    return formula


def rugged(formula: Formula, *, by: float) -> Formula:
    """Each point strays by chance, by a share of its time."""

    def strayed(chosen: Choice, rng: random.Random) -> float | None:
        ms = formula(chosen, rng)
        return None if ms is None else ms * math.exp(rng.gauss(0, by))

    return strayed


def cliff(formula: Formula, *, most: float, names: tuple[str, ...]) -> Formula:
    """Points whose tunables' product exceeds a limit can't be built."""

    def limited(chosen: Choice, rng: random.Random) -> float | None:
        wanted = math.prod(chosen[name] for name in names)
        return None if wanted > most else formula(chosen, rng)

    return limited


def tiled_product(rows: int, cols: int, depth: int) -> Formula:
    """As a tiled product of bfloat16 may do on a device of 132 multiprocessors."""

    def formula(chosen: Choice, rng: random.Random) -> float | None:
        m, n, k = chosen["BLOCK_M"], chosen["BLOCK_N"], chosen["BLOCK_K"]
        warps, stages = chosen["WARPS"], chosen["STAGES"]
        shared = 2 * k * (m + n) * stages
        if shared > 232448:
            return None
        registers = 40 + m * n / (32 * warps) + 2 * k
        spills = max(0.0, registers - 255)
        blocks = max(
            1,
            min(
                232448 // max(shared, 1),
                int(65536 // (min(registers, 255) * 32 * warps)),
                64 // warps,
            ),
        )
        tiles = math.ceil(rows / m) * math.ceil(cols / n)
        waves = math.ceil(tiles / (132 * blocks))
        loads = 2 * (m + n) * k / 24.0
        math_ns = (
            2 * m * n * k / (7000 * min(1.0, m * n / 8192) * min(1.0, warps / 4) * min(1, k / 32))
        )
        latency = 700 / min(stages, 4) / max(1, warps * blocks / 8)
        step_ns = max(loads, math_ns) + latency + 0.6 * spills
        ms = waves * blocks * math.ceil(depth / k) * step_ns * 1e-6 + 0.003
        return ms * math.exp(rng.gauss(0, 0.02))

    return formula


def make_all(seed: int = 0) -> list[Landscape]:
    """Return one landscape of each kind."""
    best = {"BLOCK": 64, "TILE": 128, "DEPTH": 32, "WARPS": 4, "STAGES": 2}
    sharp = cliff(bowl(**best), most=64 * 128 * 2, names=("BLOCK", "TILE", "STAGES"))
    product = (PRODUCT, tiled_product(2048, 2048, 2048))
    return [
        make_landscape("smooth", (WIDE, bowl(**best)), seed=seed),
        make_landscape("rugged", (WIDE, rugged(bowl(**best), by=0.15)), seed=seed),
        make_landscape("cliff", (WIDE, rugged(sharp, by=0.03)), seed=seed),
        make_landscape("product", product, seed=seed),
        make_landscape("product-tall", (PRODUCT, tiled_product(16384, 256, 512)), seed=seed),
        make_landscape(
            "structures",
            (WIDE, rugged(bowl(**{**best, "BLOCK": 16}), by=0.05)),
            (PRODUCT, tiled_product(4096, 4096, 128)),
            seed=seed,
        ),
    ]


def outcomes(landscape: Landscape) -> dict[int, Outcome]:
    return {place: landscape.outcome(place) for place in range(landscape.size)}

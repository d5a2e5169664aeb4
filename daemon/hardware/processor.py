"""What this machine's processor says of itself, below ``/proc`` and ``/sys``."""

import re
from collections.abc import Mapping
from pathlib import Path

from daemon.hardware.draft import Draft, Limit
from operator_registry.registry import CATALOG, load_registry
from optimizer.targets import host_cpu_arch

_LANES = {"x86-64-v4": 16, "x86-64-v3": 8, "x86-64-v2": 4}
"""Of float32 in a register."""
_UNITS = 2
"""That multiply and add in each core, in every server's processor of these levels."""
_FLOP = 2
_VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
_KIB, _KHZ = 1 << 10, 1e3


def draft_processor(root: Path = Path("/")) -> Draft:
    """Return the draft of this machine's processor.

    Args:
        root: Where ``proc`` and ``sys`` are.
    """
    facts = read_facts((root / "proc/cpuinfo").read_text(encoding="utf-8"))
    arch = host_cpu_arch()
    model = facts.get("model name", "a processor")
    level = arch.removeprefix("x86-64-")
    return Draft(
        name=f"cpu-{arch}",
        summary=f"{model}, {facts['cores']} cores in use.",
        vendor=_VENDORS.get(facts.get("vendor_id", ""), "any"),
        target="cpu",
        arch=arch,
        language="cpp",
        limits={
            "dram_bandwidth_gb_s": _bandwidth(arch),
            "dram_gb": _memory(root),
            "last_level_cache_mb": _cache(root),
        },
        peaks=_peaks(facts, arch, root),
        labels=("self-hosted", "linux", "x64", *(("avx512",) if level == "v4" else ())),
    )


def read_facts(cpuinfo: str) -> dict[str, str]:
    """Return what ``/proc/cpuinfo`` says of the first processor, and how many there are."""
    lines = [line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line]
    facts: dict[str, str] = {}
    for name, value in lines:
        facts.setdefault(name.strip(), value.strip())
    return facts | {"cores": str(sum(name.strip() == "processor" for name, _ in lines))}


def _bandwidth(arch: str) -> Limit:
    """Return the widest machine's of this class: no machine tells how many channels it has."""
    known = load_registry(CATALOG).hardware
    widest = known.get(f"cpu-{arch}") or known["cpu-x86-64-v3"]
    how = f"channels x transfers a second x 8 bytes; here that of the widest machine of {arch}"
    return Limit(widest.limits.dram_bandwidth_gb_s, "stand-in", how)


def _memory(root: Path) -> Limit:
    found = re.search(r"MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(encoding="ascii"))
    gb = int(found[1]) * _KIB / 1e9 if found else 1.0
    return Limit(round(gb, 1), "read", "/proc/meminfo, all sockets")


def _cache(root: Path) -> Limit:
    """Return the size of all caches of the last level together."""
    caches: dict[tuple[int, str], int] = {}
    for folder in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        kind, level, size, shared = (
            (folder / name).read_text(encoding="ascii").strip()
            for name in ("type", "level", "size", "shared_cpu_list")
        )
        if kind != "Instruction":
            caches[int(level), shared] = int(size.rstrip("K")) * _KIB
    last = max((level for level, _ in caches), default=0)
    sizes = [size for (level, _), size in caches.items() if level == last]
    if not sizes:
        return Limit(1.0, "stand-in", "the machine tells of no cache")
    how = f"{len(sizes)} of level {last} in /sys/devices/system/cpu"
    return Limit(round(sum(sizes) / 1e6, 2), "read", how)


def _peaks(facts: Mapping[str, str], arch: str, root: Path) -> dict[str, Limit]:
    hz, of = _clock(facts, root)
    cores, lanes = int(facts["cores"]), _LANES[arch]
    tflop_s = cores * hz * lanes * _UNITS * _FLOP / 1e12
    how = f"{cores} cores x {hz / 1e9:.2f} GHz ({of}) x {_UNITS} units x {_FLOP} x lanes"
    return {
        "float64": Limit(round(tflop_s / 2, 4), "derived", f"{how} ({lanes // 2})"),
        "float32": Limit(round(tflop_s, 4), "derived", f"{how} ({lanes})"),
    }


def _clock(facts: Mapping[str, str], root: Path) -> tuple[float, str]:
    file = root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
    if file.is_file():
        return int(file.read_text(encoding="ascii")) * _KHZ, "its greatest"
    return float(facts.get("cpu MHz", "1000")) * 1e6, "as it is now, the greatest may be higher"

"""One C++ text for several candidates at once, since a compiler's start costs most of a build.

A candidate's code is compiled once for each set of constants that its instances have, in a
namespace of its own, under these macros and no others: each constant and tunable by its name, each
dtype variable as a C++ type, and ``KERNEL(name)``, which names an exported function::

    extern "C" void KERNEL(scale)(const T* x, T* y, int64_t count, double factor) { ... }

Sizes are ``int64_t`` and other numbers ``double``; a list of tensors is ``const T* const*`` (or
``T* const*`` to be written to), a list of sizes ``const int64_t*``. ``bf16`` and ``fp16`` are there
beside C++'s own types and turn into float by themselves.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from optimizer.targets.artefact import source_sha256
from optimizer.targets.target import Build, Constant, Instance

PRELUDE: Final = """\
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <omp.h>
using fp16 = _Float16;
struct bf16 {
  uint16_t bits;
  bf16() = default;
  bf16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    bits = value == value ? (word + 0x7fffu + ((word >> 16) & 1u)) >> 16 : 0x7fc0u;
  }
  operator float() const {
    uint32_t word = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};
"""
_CPP_TYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "float16": "fp16", "bfloat16": "bf16",
    "int64": "int64_t", "int32": "int32_t", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip
_INT32: Final = 2**31
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_KERNEL = re.compile(r"\bKERNEL\s*\(\s*(\w+)\s*\)")
_LONER = re.compile(
    r"#\s*pragma\s+(?:GCC\s+(?!ivdep\b|unroll\b)|push_macro|pop_macro|once)|\b_Pragma\b"
    r"|\b__?asm(?:__)?\b|\bconstructor\b|#\s*(?:undef|line)\b"
)


def is_loner(code: str) -> bool:
    """Return whether code may change how code after it is compiled, and is thus built alone."""
    return _LONER.search(code) is not None


def exported_name(instance: Instance, *, source: str) -> str:
    """Return an instance's name in the library, which no kernel of another source has."""
    return f"{instance.symbol}_{source[:12]}"


def file_of(position: int) -> str:
    """Return the file name that the compiler's messages give to a build's code."""
    return f"variant_{position}.cpp"


def write_unit(builds: Sequence[Build]) -> str:
    """Return the C++ text with all instances of all builds."""
    includes = [line.strip() for b in builds for line in _INCLUDE.findall(b.code)]
    parts = [PRELUDE, *dict.fromkeys(includes)]
    for position, build in enumerate(builds):
        for constants, instances in _grouped(build.instances):
            parts += _section(build, position, constants, instances)
    return "\n".join(parts) + "\n"


def find_missing(builds: Sequence[Build]) -> str | None:
    """Return a message, in the compiler's form, where code lacks a kernel that is wanted of it."""
    for position, build in enumerate(builds):
        there = set(_KERNEL.findall(build.code))
        if missing := {i.kernel for i in build.instances} - there:
            name = min(missing)
            return f'{file_of(position)}:1: error: no function extern "C" void KERNEL({name})(...)'
    return None


def write_exports(builds: Sequence[Build]) -> str:
    """Return the linker's list of the names to export: the kernels and nothing else."""
    names = [exported_name(i, source=source_sha256(b.code)) for b in builds for i in b.instances]
    exported = "global: " + "".join(f"{name}; " for name in names) if names else ""
    return f"{{ {exported}local: *; }};\n"


def _grouped(
    instances: Iterable[Instance],
) -> Iterable[tuple[tuple[tuple[str, Constant], ...], list[Instance]]]:
    """Return instances by their constants: those with the same constants share one text."""
    groups: dict[tuple[tuple[str, Constant], ...], list[Instance]] = {}
    for instance in instances:
        members = groups.setdefault(instance.constants, [])
        # Two of the same name differ in argument types only, which C++ states by itself.
        if instance.kernel in {member.kernel for member in members}:
            groups[(*instance.constants, ("", instance.symbol))] = [instance]
        else:
            members.append(instance)
    return groups.items()


def _section(
    build: Build,
    position: int,
    constants: Sequence[tuple[str, Constant]],
    instances: list[Instance],
) -> list[str]:
    code = _INCLUDE.sub("", build.code)
    source = source_sha256(build.code)
    group = f"{position}_{instances[0].symbol}_{source[:12]}"
    names = {name: f"{name}_{group}" for name in _KERNEL.findall(code)}
    names |= {i.kernel: exported_name(i, source=source) for i in instances}
    macros = {name: _literal(value) for name, value in constants if name}
    macros |= {f"KERNEL_{name}": symbol for name, symbol in names.items()}
    undone = [*macros, "KERNEL", *_DEFINE.findall(code)]
    return [
        *(f"#define {name} {value}" for name, value in macros.items()),
        "#define KERNEL(name) KERNEL_##name",
        f"namespace variant_{group} {{",
        f'#line 1 "{file_of(position)}"',
        code,
        "}",
        *(f"#undef {name}" for name in dict.fromkeys(undone)),
    ]


def _literal(value: Constant) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"({value}{'' if -_INT32 < value < _INT32 else 'LL'})"
        case float():
            return f"({value!r})"
        case str():
            return _CPP_TYPES[value]

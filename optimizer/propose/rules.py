"""What a model is told of its task whatever the operator: the judge's rules and a reply's form."""

from collections.abc import Mapping
from typing import Final

from operator_registry.hardware import Language
from optimizer.propose.fence import WARNING

JUDGE: Final = """\
You write compute kernels. A judge builds, checks and times what you write; nothing else counts.
- Correct means: at every size in the axes' ranges, for each admitted dtype, on fresh inputs
  with a secret seed, each output is as near to a float64 oracle as the reference is, or within
  a few eps. Sizes need not be multiples of anything. Inputs may be large or begin at any
  element.
- Fast means: faster than the best of eager, torch.compile and the known kernels, cold cache,
  fresh values in each call. Keep nothing between two calls.
- Every output is computed in each call from this call's inputs. Inputs are only read. Nothing
  is written beside outputs and buffers. No state, files, threads that outlive the call, or
  clocks.
- A kernel that tells a check from a timing, lowers the precision or works for the named sizes
  only is refused. A change of the algorithm is welcome where the mathematics is the same."""

_CPP: Final = """\
Code: one C++17 file for g++ -O3, functions `extern "C" void KERNEL(name)(...)`, called with the
plan's arguments: inputs `const T*`, outputs and buffers `T*`, lists `const T* const*`, sizes
`int64_t`, other numbers `double`. Dtype variables (such as T), tunables and a launch's
constants are macros. `bf16` and `fp16` turn into float by themselves. Headers: <cmath>,
<cstdint>, <cstring>, <algorithm>, <immintrin.h>, <omp.h> and the like. Use `#pragma omp
parallel for` and `omp simd`; no assembly. Tunables, if any, are one comment line:
// TUNABLES = {"BLOCK": (4, 8, 16)}"""
_TRITON: Final = """\
Code: one Python file that imports triton and triton.language as tl, with @triton.jit kernels. A
launch passes pointers, then sizes; tl.constexpr parameters come from the step's `constants`.
Tunables, if any, are a literal at module level: TUNABLES = {"BLOCK": (512, 1024)}"""
_PLAN: Final = """\
Plan: JSON with `language`, `steps` and perhaps `let` (named expressions) and `buffers`
(scratch: {"name": {"shape": ["rows"], "dtype": "float32", "zeroed": false}}). A step is
{"kind": "launch", "kernel": "name", "arguments": ["x", "y", "rows"]GRID} or {"kind": "library",
"op": "aten::mm.out", "arguments": ["a", "b"], "out": ["c"]}. Arguments are names of inputs,
outputs, buffers, axes, attributes, or expressions over axes, attributes, `let` names and
tunables with + - * // % min max cdiv next_power_of_2. A step may have `when`: "rows > 0"."""
_PYTHON: Final = """\
Or, only where a plan can't do it: a Python file whose `run(*inputs, *outputs, **attributes)`
fills the given outputs on the current stream, with {"language": "python", "steps": [{"kind":
"launch", "kernel": "name", "arguments": []}]} that names each kernel it launches."""
_GRID: Final = ', "grid": ["cdiv(rows, BLOCK)"], "constants": {"BLOCK": "BLOCK"}, "warps": "4"'
_FORMS: Final[Mapping[Language, str]] = {
    "cpp": f"{_CPP}\n{_PLAN.replace('GRID', '')}",
    "triton": f"{_TRITON}\n{_PLAN.replace('GRID', _GRID)}\n{_PYTHON}",
}
_TAGS: Final[Mapping[Language, str]] = {"cpp": "cpp", "triton": "python"}
_REPLY: Final = """\
Reply with one line that says what you change and why, then exactly one block with the whole
file, then one with the plan and a value for each tunable:
```TAG
...
```
```json
{"plan": {"language": "LANGUAGE", "steps": [...]}, "chosen": {}}
```"""


def writing_rules(languages: tuple[Language, ...]) -> str:
    """Return what stands before a task in which kernels are written."""
    forms = (_FORMS[language] for language in languages)
    reply = _REPLY.replace("TAG", _TAGS[languages[0]]).replace("LANGUAGE", languages[0])
    return "\n\n".join((JUDGE, *forms, reply, WARNING))


PICKING: Final = f"""\
You help to tune a compute kernel. You are told of the hardware, the kernel and what was tried,
and get a numbered list of moves. Pick the moves that most likely make it faster, the best
first.
Reply with JSON alone: {{"moves": [NUMBER, ...]}}

{WARNING}"""

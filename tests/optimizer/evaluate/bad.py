"""Candidates that are really bad, three of each kind, for the operator of `tests.makers`."""

from collections.abc import Mapping

from optimizer.candidate import Candidate
from optimizer.plan import Buffer, Launch, Plan

HEAD = 'extern "C" void KERNEL(scale)(const T* x, T* y, int64_t rows, double factor) '
LOOP = "for (int64_t i = 0; i < rows; ++i) "
RIGHT = "y[i] = x[i] * static_cast<T>(factor);"
ARGUMENTS = ("x", "y", "rows", "factor")


def make(body: str, *, before: str = "", plan: Plan | None = None) -> Candidate:
    return Candidate(
        code=f"{before}\n{HEAD}{{ {body} }}\n",
        plan=plan or Plan(language="cpp", steps=(Launch(kernel="scale", arguments=ARGUMENTS),)),
        origin="test",
    )


def into_scratch(rows: str) -> Plan:
    return Plan(
        language="cpp",
        buffers={"scratch": Buffer(shape=(rows,), dtype="T")},
        steps=(Launch(kernel="scale", arguments=("x", "scratch", "rows", "factor")),),
    )


GOOD = make(LOOP + RIGHT)
BAD: Mapping[str, tuple[Candidate, Candidate, Candidate]] = {
    "syntax error": (
        make(LOOP + "y[i] = x[i] * "),
        make(LOOP + "y[i] = undeclared(x[i]);"),
        make(LOOP + RIGHT + "}"),
    ),
    "wrong shape": (
        make("for (int64_t i = 0; i < rows / 2; ++i) " + RIGHT),
        make(LOOP + RIGHT, plan=into_scratch("rows")),
        make("for (int64_t i = 0; i < rows + 1000000000; ++i) y[i] = 1;"),
    ),
    "wrong dtype": (
        make(LOOP + "reinterpret_cast<int32_t*>(y)[i] = x[i] * factor;"),
        make(LOOP + "reinterpret_cast<double*>(y)[i / 2] = x[i] * factor;"),
        make(LOOP + "y[i] = static_cast<float>(bf16(x[i])) * static_cast<T>(factor);"),
    ),
    "NaN": (
        make(LOOP + "y[i] = x[i] / 0.0f * 0.0f;"),
        make(LOOP + RIGHT + ' if (rows) y[rows - 1] = __builtin_nanf("");'),
        make(LOOP + "y[i] = (x[i] * static_cast<T>(factor)) / (i == 7 ? 0.0f : 1.0f);"),
    ),
    "infinite loop": (
        make("volatile bool on = true; while (on) {}"),
        make("volatile int64_t i = 0; for (;; ++i) y[0] = i;"),
        make("omp_lock_t lock; omp_init_lock(&lock); omp_set_lock(&lock); omp_set_lock(&lock);"),
    ),
    "100 GB allocation": (
        make(
            "for (int64_t i = 0; i < 100; ++i) "
            "memset(malloc(int64_t(1) << 30), 1, int64_t(1) << 30);",
            before="#include <cstdlib>",
        ),
        make("std::vector<char> v(int64_t(100) << 30, 1);", before="#include <vector>"),
        make(LOOP + RIGHT, plan=into_scratch("26843545600")),
    ),
    "exit": (
        make("_exit(0);", before='extern "C" void _exit(int);'),
        make("exit(3);", before="#include <cstdlib>"),
        make("abort();", before="#include <cstdlib>"),
    ),
    "segmentation fault": (
        make("*reinterpret_cast<volatile int*>(8) = 1;"),
        make("reinterpret_cast<void (*)()>(16)();"),
        make(
            "grow(1);",
            before="static int64_t grow(volatile int64_t n) "
            "{ volatile char a[4096]; a[n % 4096] = 1; return grow(n + 1) + a[n % 4096]; }",
        ),
    ),
}
"""By kind."""

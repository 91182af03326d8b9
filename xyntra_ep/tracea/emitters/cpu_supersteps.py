"""How a CPU's threads share out supersteps of work, as C: see `semantic_ir.superstep_nodes`."""

from __future__ import annotations

_HEAD = "static inline __attribute__((always_inline)) "
# A spinning thread tells its core, so that the other thread of the core, if there is one, has all of it. Who is waited for is at
# work; but where there are more threads than cores it may need this one, and after some ten microseconds it gets it.
_PATIENCE = 512
_PAUSE = """extern int sched_yield(void);
#if defined(__x86_64__)
#define XY_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define XY_PAUSE() __asm__ volatile("yield")
#else
#define XY_PAUSE() ((void)0)
#endif"""
# A look first: an exchange that fails would take the cache line from the thread that has it.
SUPERSTEP_HELPERS = {
    "claim": _HEAD
    + "i64 xy_claim(i64 *p, i64 superstep) { return __atomic_load_n(p, __ATOMIC_RELAXED) == superstep && "
    + "__atomic_compare_exchange_n(p, &superstep, superstep + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED); }",
    "reached": _HEAD + "i64 xy_reached(const i64 *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }",
    "arrive": _HEAD + "void xy_arrive(i64 *p, i64 number) { __atomic_fetch_add(p, number, __ATOMIC_ACQ_REL); }",
    "await": f"{_PAUSE}\n{_HEAD}"
    + "void xy_await(const i64 *p, i64 number) { for (unsigned i = 1; __atomic_load_n(p, __ATOMIC_ACQUIRE) < number; i++) "
    + f"{{ if (i % {_PATIENCE}) XY_PAUSE(); else sched_yield(); }} }}",
}

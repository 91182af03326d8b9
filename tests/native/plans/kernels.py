"""C bodies of the kernels that the hand-made plans use; index by `NUMBER[name]` in a plan's steps."""

from __future__ import annotations

BODIES = {
    # x, y | n; 16 elements a unit
    "relu": """
        const float *x = b[0]; float *y = b[1];
        for (int64_t i = begin * 16; i < end * 16 && i < p[0]; i++) y[i] = x[i] > 0 ? x[i] : 0;""",
    # x, w, y | n, length of w; 16 elements a unit
    "add": """
        const float *x = b[0], *w = b[1]; float *y = b[2];
        for (int64_t i = begin * 16; i < end * 16 && i < p[0]; i++) y[i] = x[i] + w[i % p[1]];""",
    # from, to | n: the packing of weights; doubles them, so that a test sees that it ran
    "pack": """
        const float *x = b[0]; float *y = b[1];
        for (int64_t i = 0; i < p[0]; i++) y[i] = 2 * x[i];""",
    # from, to | n: a packing that tells how often it ran
    "stamp": """
        static int calls = 0; float *y = b[1]; ++calls;
        for (int64_t i = 0; i < p[0]; i++) y[i] = (float)calls;""",
    # y | n, value
    "fill": """
        float *y = b[0];
        for (int64_t i = begin * 16; i < end * 16 && i < p[0]; i++) y[i] = (float)p[1];""",
    # x, y | n; each unit writes its own index, so units that are lost or repeated show
    "unit": """
        float *y = b[1];
        for (int64_t i = begin; i < end; i++) y[i] += (float)i + 1;""",
    # y | value
    "tell": """
        int64_t *y = b[0]; y[0] = p[0];""",
    # x, y | n, and reads far: what follows a buffer must be readable
    "sum_past_end": """
        const float *x = b[0]; float *y = b[1]; float junk = 0;
        for (int64_t i = 0; i < p[0] + 16; i++) junk += x[i];
        y[0] = junk == 12345.0f ? 1 : 0;""",
}
NUMBER = {name: number for number, name in enumerate(BODIES)}

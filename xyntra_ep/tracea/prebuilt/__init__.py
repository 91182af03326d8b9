"""Kernels that are compiled before anyone has a model: where there is no compiler, or no time for one yet.

    ops.jsonl.xz     ops of many models, recorded by `python -m xyntra_ep.diagnostics.record_ops`
    <target>.so.xz   their kernels for a kind of processor, with the digests of their texts in <target>.json; `make prebuilt`
                     writes them, and they are in the wheel

Sizes are parameters of these kernels (`planning/opened_op.py`), so a kernel serves all ops that differ in nothing else.
"""

"""Cases from modules of PyTorch: each at every batch and number of threads, exported to ONNX where a contender runs files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_bench.architectures._architecture import Architecture
from xyntra_bench.architectures._modules import full_size, module_row
from xyntra_bench.contenders import TORCH_BACKENDS, Contender
from xyntra_bench.errors import reason_of
from xyntra_bench.plan import Case

FAMILY = "torch"
LENGTH = "sequence"  # the dimension that is called so


def cases_of_modules(
    names: Sequence[str],
    threads: Sequence[int],
    batches: Sequence[int],
    contenders: Sequence[Contender],
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Case, ...]:
    """Those of full size unless named. One that cannot be exported is measured without its export, and ``say`` is told why.
    Raises BenchError where no module has the name."""
    rows = [module_row(name) for name in names] or list(full_size)
    runs_files = any(contender.provider not in TORCH_BACKENDS for contender in contenders)
    files = {row.name: _file(row, say) if runs_files else "" for row in rows}
    return tuple(
        Case(
            model=row.name,
            module=row.name,
            family=FAMILY,
            batch=batch,
            seq=row.sizes.get(LENGTH),
            threads=count,
            file=files[row.name],
            max_err=row.max_err,
        )
        for row in rows
        for batch in batches
        for count in threads
    )


def _file(row: Architecture, say: Callable[[str], None]) -> str:
    from xyntra_bench.architectures._export import exported

    try:
        return str(exported(row))
    except Exception as error:  # of PyTorch's exporters, which have many
        say(f"{row.name}: cannot be exported to ONNX ({reason_of(error)}). contenders that run files have no row of it")
        return ""

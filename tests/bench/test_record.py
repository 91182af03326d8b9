from __future__ import annotations

import numpy as np
import pytest

from xyntra_bench.contenders import Contender
from xyntra_bench.interleaving import Runner, comparisons
from xyntra_bench.loads import Sample
from xyntra_bench.record import MOST_SAMPLES, conclude, row_of
from xyntra_bench.results import Accuracy, Check, Creation, Status, Verdict
from xyntra_bench.setups import Setup

PEER = "OpenVINO"
NO_FACTORY: object = type("NoFactory", (), {"notes": ()})()


def runner(label: str, ms: float, *, state: Accuracy = Accuracy.OK, against: str = "", peers: tuple[str, ...] = ()) -> Runner:
    """Two rounds of eight iterations, each of two equal runs."""
    ns = int(ms * 1e6)
    return Runner(
        setup=Setup(label=label, contender=Contender(provider=label), threads=1, against=against, peers=peers),
        factory=NO_FACTORY,  # type: ignore[arg-type]  # asked for its notes alone
        session=None,
        creation=Creation(cold_ns=2, planned_ns=None, warm_ns=1, compile_cpu_ns=None, rss_growth_bytes=0, artefact_bytes=None),
        placement=None,
        precision="",
        load=None,  # type: ignore[arg-type]  # its runs are over
        outputs=[np.ones(3)],
        check=Check(state=state, max_err=2e-5, error=1e-6) if against else None,
        samples=[Sample(ns, 2 * ns)] * 32,
        round_ns=[[float(ns)] * 8, [float(ns)] * 8],
    )


def everyone(*runners: Runner) -> dict[str, Runner]:
    return {runner.setup.label: runner for runner in runners}


def test_a_right_result_has_its_speed_and_processor_time() -> None:
    base, ours = runner("CPU", 3), runner("XyntraEP", 2, against="CPU")
    m = conclude(ours, everyone(base, ours))
    assert m.ratio is not None and m.ratio.middle == 1.5 and m.verdict is Verdict.FASTER
    assert m.latency is not None and m.latency.n == 32 and m.cpu_ns == 4_000_000 and len(m.samples_ns) == 32
    assert conclude(base, everyone(base, ours)).ratio is None


@pytest.mark.parametrize("state", Accuracy)
def test_a_wrong_result_has_no_speed_and_neither_has_one_beside_it(state: Accuracy) -> None:
    base, ours = runner("CPU", 3), runner("XyntraEP", 2, against="CPU", peers=(PEER,))
    peer = runner(PEER, 2.5, state=state, against="CPU")
    together = everyone(base, ours, peer)
    good = state is Accuracy.OK
    assert (conclude(peer, together).ratio is not None) is good
    assert set(conclude(ours, together).peers) == ({PEER} if good else set())
    wanted = {(pair.reference, pair.other) for pair in comparisons([base, ours, peer])}
    assert wanted == {("CPU", "XyntraEP")} | ({("CPU", PEER), (PEER, "XyntraEP")} if good else set())


def test_of_a_long_run_the_histogram_alone_is_kept() -> None:
    base = runner("CPU", 3)
    base.samples = [Sample(1_000_000, 1)] * (MOST_SAMPLES + 1)
    m = conclude(base, everyone(base))
    assert m.samples_ns == () and m.latency is not None and m.latency.n == MOST_SAMPLES + 1


def test_what_could_not_be_measured_keeps_its_place() -> None:
    setup = Setup(label="A t2", contender=Contender.parse("A:x=1"), threads=2, against="A t1")
    m = row_of(setup, Status.UNAVAILABLE, "A: not installed")
    assert (m.label, m.threads, m.against, m.status, m.error) == ("A t2", 2, "A t1", "unavailable", "A: not installed")
    assert m.contender == setup.contender and m.latency is None and m.ratio is None

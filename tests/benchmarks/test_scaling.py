"""The formula of an update on n workers, its fit, and the page made of it."""

import pytest

from benchmarks.scaling.forecast import report
from benchmarks.scaling.forecast.report import scaling_report
from benchmarks.scaling.forecast.update_time import (
    Assumptions,
    Compute,
    Network,
    all_reduce_seconds,
    fit_compute,
    fit_network,
    predict,
    step_seconds,
)
from benchmarks.scaling.scaling import fit
from benchmarks.shared.result_rows import append_rows

COMPUTE = Compute(overhead=0.011, per_token=3e-5)
NETWORK = Network(latency=7e-4, bandwidth=3e8)
GUESS = Assumptions(
    gpu_tflops=100.0,
    utilisation=0.5,
    overhead_ms=10.0,
    latency_us=20.0,
    gpus_per_machine=8,
    machine_gbit=800.0,
)
MODEL = dict(
    flops_per_token=1e9, parameters=50_000_000, collectives=5, tokens=1_000
)


def test_compute_is_found_again():
    tokens = [100, 700, 1_300]
    found = fit_compute(tokens, [0.011 + 3e-5 * t for t in tokens])
    assert found.overhead == pytest.approx(0.011)
    assert found.per_token == pytest.approx(3e-5)


def test_the_network_is_found_again():
    # Two workers: 2 stages of a half; four: 6 stages of a quarter.
    sizes = [1e3, 1e6, 5e6]
    seconds = [2 * (7e-4 + b / 2 / 3e8) for b in sizes]
    seconds += [6 * (7e-4 + b / 4 / 3e8) for b in sizes]
    found = fit_network([2] * 3 + [4] * 3, sizes * 2, seconds)
    assert found.latency == pytest.approx(7e-4)
    assert found.bandwidth == pytest.approx(3e8)


def test_noise_makes_no_negative_time():
    # The line through these has a negative overhead; through zero it is flat.
    found = fit_compute([1, 2, 3], [0.5, 2.0, 3.5])
    assert found.overhead == 0
    # Least squares of 1 - f x with x = 2, 1, 6/7.
    slope = (2 + 1 + 6 / 7) / (4 + 1 + 36 / 49)
    assert found.per_token == pytest.approx(slope)
    found = fit_compute([1, 2, 3], [3.0, 2.0, 1.5])
    assert found.per_token == 0


def test_one_worker_sends_nothing():
    assert all_reduce_seconds(1, 1e9, NETWORK) == 0
    assert step_seconds(
        1, 100, 1e9, COMPUTE, NETWORK, 5, parts=2
    ) == pytest.approx(0.011 + 200 * 3e-5)


def test_eight_gpus_by_hand():
    row = predict(
        GUESS, gpus=8, network_gbit=10, bytes_per_gradient=4, parts=2, **MODEL
    )
    # 2 parts of 1,000 tokens of 1 GFLOP at 50 TFLOP/s, and 10 ms.
    assert row["compute_ms"] == pytest.approx(40 + 10)
    # 14 stages of 20 us and an eighth of 200 MB at 100 GB/s.
    assert row["gradients_ms"] == pytest.approx(14 * (0.02 + 0.25))
    assert row["small_all_reduces_ms"] == pytest.approx(4 * 14 * 0.02)
    step = 50 + 3.78 + 1.12
    assert row["step_ms"] == pytest.approx(step)
    assert row["global_tokens"] == 16_000
    assert row["tokens_per_second"] == pytest.approx(16_000 / step * 1e3)
    assert row["efficiency"] == pytest.approx(50 / step)


def test_more_than_a_machine_wait_for_the_network_between_them():
    def gradients_ms(size, network_gbit):
        return predict(
            GUESS,
            gpus=16,
            network_gbit=network_gbit,
            bytes_per_gradient=size,
            **MODEL,
        )["gradients_ms"]

    # 30 stages of 20 us and a sixteenth of 200 MB at 1.25 GB/s.
    assert gradients_ms(4, 10) == pytest.approx(30 * (0.02 + 10))
    assert gradients_ms(2, 10) == pytest.approx(30 * (0.02 + 5))
    # No network makes the inside of a machine faster: 100 GB/s.
    assert gradients_ms(4, 9_999) == pytest.approx(30 * (0.02 + 0.125))


def measured_rows():
    """Rows that follow the formula; four workers on two cores."""
    rows = []
    for n, shared in ((1, 1), (2, 1), (4, 2)):
        for tokens in (96, 480):
            num_bytes = 5_000_000 if n > 1 else 0
            seconds = step_seconds(
                n, tokens, num_bytes, COMPUTE, NETWORK, 5 if n > 1 else 1
            ) + (shared - 1) * COMPUTE.seconds(tokens)
            rows.append(
                {
                    "quantity": "step",
                    "workers": n,
                    "workers_per_core": shared,
                    "tokens_per_replica": tokens,
                    "bytes": num_bytes,
                    "collectives": 5 if n > 1 else 0,
                    "ms_median": 1e3 * seconds,
                    "deviation": 0.02,
                    "tokens_per_second": n * tokens / seconds,
                    "loopback_bytes": 0,
                    "ring_bytes": 2 * (n - 1) * num_bytes,
                }
            )
        for num_bytes in (1_024, 4_000_000) if n > 1 else ():
            seconds = all_reduce_seconds(n, num_bytes, NETWORK)
            rows.append(
                dict.fromkeys(rows[0], "")
                | {
                    "quantity": "all_reduce",
                    "workers": n,
                    "bytes": num_bytes,
                    "ms_median": 1e3 * seconds,
                }
            )
    return rows


def test_rows_that_follow_the_formula_are_met():
    rows = measured_rows()
    fit(rows)
    for row in rows:
        assert row["model_ms"] == pytest.approx(row["ms_median"])
        assert row["fit_latency_us"] == pytest.approx(700)
        assert row["fit_mb_per_second"] == pytest.approx(300)
    assert [row["is_fitted"] for row in rows if row["quantity"] == "step"] == [
        *(True, True),
        *(False,) * 4,
    ]


def write_results(folder, run, reading):
    """Writes both tables as `scaling.py` does."""
    common = {"run": run, "date": "2031-05-07", "commit": "abc", "machine": "m"}
    common |= {"tensorflow": "2", "keras": "3", "model": "toy"}
    common |= {"parameters": 1_250_000, "rounds": 3, "updates": 7}
    rows = measured_rows()
    fit(rows)
    rows.append(
        dict.fromkeys(rows[0], "")
        | {"quantity": "reading", "tokens_per_second": reading}
    )
    append_rows(folder / "scaling_measured.csv", [common | r for r in rows])
    predicted = [
        {
            **{"run": run, "preset": "toy_base", "parameters": 50_000_000},
            **{"scaling": kind},
            **predict(
                GUESS,
                gpus=gpus,
                network_gbit=gbit,
                bytes_per_gradient=size,
                parts=parts,
                **{**MODEL, "tokens": tokens},
            ),
        }
        for gpus in (8, 16)
        for gbit in (10, 100)
        for size in (4, 2)
        for kind, parts, tokens in (
            ("weak", 1, 1_000),
            ("weak", 3, 1_000),
            ("strong", 1, 32_000 // gpus),
        )
    ]
    append_rows(folder / "scaling_predicted.csv", predicted)


def test_the_page_says_what_the_newest_rows_say(tmp_path):
    write_results(tmp_path, "first", 111_000)
    write_results(tmp_path, "second", 222_000)
    page = "\n\n".join(scaling_report(tmp_path))
    assert "read 0.22 million" in page and "0.11 million" not in page
    assert "latency 700 µs per stage and 300 MB/s" in page
    # Four workers, two on a core, 480 tokens: twice 25.4 ms of compute, 6
    # stages of 0.7 ms and a quarter of 5 MB at 300 MB/s, four of few bytes.
    step = 2 * 25.4 + 6 * (0.7 + 5 / 4 / 300 * 1e3) + 4 * 6 * 0.7
    assert (
        f"| 4 | 2 | 480 | {step:.1f} | {step:.1f} | {4 * 480 / step * 1e3:,.0f}"
        " |" in page
    )
    # 16 GPUs: 20 ms and 10 ms of compute, 30 stages (see above), 4 small ones.
    shares = [
        (20 * parts + 10)
        / (20 * parts + 10 + 30 * (0.02 + size * 2.5 / gbit * 10) + 4 * 0.6)
        for gbit in (10, 100)
        for parts in (1, 3)
        for size in (4, 2)
    ]
    shares = [f"{100 * share:.0f}" for share in shares]
    line = next(x for x in page.splitlines() if x.startswith("| 16 |"))
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[2].endswith("; " + " / ".join(shares[:4]) + " %")
    assert cells[3].endswith("; " + " / ".join(shares[4:]) + " %")


def test_the_page_compares_counted_bytes_with_those_of_a_ring():
    rows = [
        {"quantity": "step", "ring_bytes": 30e6, "loopback_bytes": bytes_}
        for bytes_ in (31.5e6, 33e6, 0)
    ]
    assert "5.0% to 10.0% more" in report._traffic_text(rows)
    assert report._traffic_text(rows[2:]) == ""


def test_without_measurements_the_page_claims_nothing(tmp_path):
    assert scaling_report(tmp_path) == []

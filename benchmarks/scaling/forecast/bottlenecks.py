"""What limits training on many machines first, from the forecast's rows."""

import math

from benchmarks.scaling.forecast.forecast_rows import (
    BYTES_PER_GRADIENT,
    find_row,
    gradient_options,
    growing_batch_rows,
    network_speeds,
)


def bottlenecks(measured, predicted):
    """Returns one paragraph for each limit, the first one to be met first."""
    preset = predicted[0]["preset"]
    networks = network_speeds(predicted)
    gpus = sorted({row["gpus"] for row in predicted})
    fastest = networks[-1]
    largest = find_row(
        predicted, preset=preset, gpus=gpus[-1], network_gbit=fastest
    )
    return [
        _gradients_text(predicted, preset, gpus, networks),
        _reading_text(measured, predicted, preset, fastest),
        _fixed_batch_text(predicted, preset, gpus, fastest),
        _small_all_reduces_text(largest),
        _straggler_text(measured, gpus),
        _chief_text(largest),
    ]


def _gradients_text(predicted, preset, gpus, networks):
    inside = predicted[0]["gpus_per_machine"]
    beyond = next((n for n in gpus if n > inside), gpus[-1])
    middle = networks[len(networks) // 2]
    plain, half, parts, both = gradient_options(
        predicted, preset, beyond, middle
    )
    return (
        "1. **Gradients.** An update of "
        f"`{preset}` sends {plain['parameters'] * 4 / 1e6:,.0f} MB of float32 "
        "gradients, also in mixed precision, because the weights are float32. "
        f"On {beyond:.0f} GPUs at {middle:,.0f} Gbit/s this takes "
        f"{plain['gradients_ms']:.0f} ms, in addition to "
        f"{plain['compute_ms']:.0f} ms of computation: an efficiency of "
        f"{plain['efficiency']:.0%}. All gradients are results of one compiled "
        "function, so nothing is sent while it runs. With half the bytes the "
        f"efficiency is {half['efficiency']:.0%}; with gradients accumulated "
        f"over {parts['parts']:.0f} parts (`gradient_accumulation_steps`, and "
        f"a batch that many times larger) {parts['efficiency']:.0%}; with both "
        f"{both['efficiency']:.0%}. Accumulation is implemented; sending half "
        "the bytes, or sending gradients during the computation, is not."
    )


def _small_all_reduces_text(row):
    return (
        f"4. **Small all-reduces.** {row['collectives'] - 1:.0f} of the "
        f"{row['collectives']:.0f} all-reduces have a few bytes (the numbers "
        "of real tokens, the sums of the metrics), and each takes all stages "
        f"of a ring: together {row['small_all_reduces_ms']:.0f} ms on "
        f"{row['gpus']:,.0f} GPUs. It would help to have fewer of them, to "
        "read metrics only when they are shown, or to use a tree instead of a "
        "ring (which NCCL may choose; the formula does not model it)."
    )


def _chief_text(row):
    return (
        "6. **Work of the chief worker.** It writes checkpoints (weights and "
        f"Adam's two moments: {12 * row['parameters'] / 1e6:,.0f} MB for "
        f"`{row['preset']}`) and scores the averaged model at the end of "
        "training while the others wait. BLEU during training is searched on "
        "all replicas, but every worker then scores all texts. These seconds "
        "do not decrease with more GPUs: validate and save less often."
    )


def _reading_text(measured, predicted, preset, gbit):
    speed = find_row(measured, quantity="reading")["tokens_per_second"]
    ways = [
        row
        for row in growing_batch_rows(predicted)
        if (row["preset"], row["network_gbit"]) == (preset, gbit)
        and row["parts"] == 1
        and row["bytes_per_gradient"] == BYTES_PER_GRADIENT
    ]
    over = [row for row in ways if row["tokens_per_second"] > speed]
    if over:
        first = min(over, key=lambda row: row["gpus"])
        comparison = (
            f"`{preset}` would need {first['tokens_per_second'] / 1e6:,.1f} "
            f"million on as few as {first['gpus']:,.0f} GPUs (at {gbit:,.0f} "
            "Gbit/s)."
        )
    else:
        comparison = f"`{preset}` needs less in all rows of the table."
    return (
        "2. **Reading.** Every worker reads and pads all rows of the global "
        "batch and keeps its own (`AutoShardPolicy.DATA`), so that more "
        "workers do not read faster. One process was measured to read "
        f"{speed / 1e6:,.2f} million target tokens/s on the machine above; "
        f"{comparison} Workers that read only their own rows would remove this "
        "limit; until then, more reading threads help."
    )


def _fixed_batch_text(predicted, preset, gpus, gbit):
    few, many = (
        find_row(
            predicted,
            preset=preset,
            gpus=n,
            network_gbit=gbit,
            scaling="strong",
            bytes_per_gradient=BYTES_PER_GRADIENT,
        )
        for n in (gpus[0], gpus[-1])
    )
    gain = many["tokens_per_second"] / few["tokens_per_second"]
    return (
        "3. **A fixed global batch.** With a global batch of "
        f"{few['global_tokens']:,.0f} tokens, "
        f"{many['gpus'] / few['gpus']:,.0f} times the number of GPUs gives "
        f"{gain:.1f} times the tokens/s on the fastest network: each of "
        f"{many['gpus']:,.0f} GPUs has {many['tokens_per_replica']:,.0f} "
        "tokens, while overhead and all-reduces do not shrink. A larger batch "
        "needs fewer updates and another learning rate, and beyond some size "
        "it does not train better; this page does not cover quality."
    )


def _straggler_text(measured, gpus):
    alone = [
        row["deviation"]
        for row in measured
        if row["quantity"] == "step" and row["workers"] == 1
    ]
    deviation = sum(alone) / len(alone)
    longer = deviation * math.sqrt(2 * math.log(gpus[-1]))
    return (
        "5. **Slow replicas.** An update waits for the slowest replica. The "
        "updates of one worker were measured to have a standard deviation d of "
        f"{deviation:.1%}. If they were normal and independent, the slowest of "
        "n workers would be late by d √(2 ln n): "
        f"{longer:.0%} of an update on {gpus[-1]:,.0f} GPUs. Batches of equal "
        "shape keep the replicas equally fast; a slow machine is not detected, "
        "and should be removed from the cluster."
    )

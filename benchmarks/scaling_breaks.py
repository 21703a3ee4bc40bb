"""Says where training on many machines breaks first, from rows."""

import math

from scaling_rows import BYTES_PER_GRADIENT, find, networks_of, ways_of, weak_of


def breaks(measured, predicted):
    """Gives a paragraph for each thing that breaks, first things first."""
    preset = predicted[0]["preset"]
    networks = networks_of(predicted)
    gpus = sorted({row["gpus"] for row in predicted})
    inside = predicted[0]["gpus_per_machine"]
    beyond = next((n for n in gpus if n > inside), gpus[-1])
    middle = networks[len(networks) // 2]
    plain, half, parts, both = ways_of(predicted, preset, beyond, middle)
    most = find(
        predicted, preset=preset, gpus=gpus[-1], network_gbit=networks[-1]
    )
    yield (
        f"1. **Gradients.** {plain['parameters'] * 4 / 1e6:,.0f} MB of float32 "
        f"an update of `{preset}`, in mixed precision too, since the weights "
        f"are float32. On {beyond:.0f} GPUs at {middle:,.0f} Gbit/s they take "
        f"{plain['gradients_ms']:.0f} ms beside {plain['compute_ms']:.0f} ms "
        f"of compute: {plain['efficiency']:.0%}. They leave one compiled "
        "function together (`models/training_step/tensorflow_step.py`), so "
        "nothing is sent while it runs. Half the bytes: "
        f"{half['efficiency']:.0%}; "
        f"{parts['parts']:.0f} parts (`gradient_accumulation_steps`, with a "
        f"batch as many times larger): {parts['efficiency']:.0%}; both: "
        f"{both['efficiency']:.0%}. Accumulation is there today; sending half "
        "the bytes, and sending early layers' gradients while others are "
        "computed, are not."
    )
    yield _reading_text(measured, predicted, preset, networks[-1])
    yield _fixed_batch_text(predicted, preset, gpus, networks[-1])
    yield (
        f"4. **Small all-reduces.** {most['collectives'] - 1:.0f} of the "
        f"{most['collectives']:.0f} all-reduces carry a few bytes (the counts "
        "of real tokens, the sums of the metrics), and each costs all stages "
        f"of a ring: {most['small_all_reduces_ms']:.0f} ms on "
        f"{gpus[-1]:,.0f} GPUs. Fewer of them, metrics read only where they "
        "are shown, or a tree instead of a ring (which NCCL may choose, and "
        "the formula does not know) help."
    )
    yield _straggler_text(measured, gpus)
    yield (
        "6. **What the chief does alone.** It writes checkpoints (weights and "
        "two moments of Adam: "
        f"{12 * most['parameters'] / 1e6:,.0f} MB of `{preset}`) and scores "
        "the averaged model at the end (`runs/train.py`) while the others "
        "wait. BLEU during training searches on all replicas, and every "
        "worker then joins the texts and scores them for itself. These "
        "seconds do not shrink with more GPUs: validate and save less often."
    )


def _reading_text(measured, predicted, preset, gbit):
    speed = find(measured, quantity="reading")["tokens_per_second"]
    ways = [
        row
        for row in weak_of(predicted)
        if (row["preset"], row["network_gbit"]) == (preset, gbit)
        and row["parts"] == 1
        and row["bytes_per_gradient"] == BYTES_PER_GRADIENT
    ]
    over = [row for row in ways if row["tokens_per_second"] > speed]
    if over:
        first = min(over, key=lambda row: row["gpus"])
        when = (
            f"`{preset}` would want {first['tokens_per_second'] / 1e6:,.1f} "
            f"million on {first['gpus']:,.0f} GPUs already (at {gbit:,.0f} "
            "Gbit/s)."
        )
    else:
        when = f"`{preset}` stays below that on all rows of the table."
    return (
        "2. **Reading.** Every worker reads and pads the rows of the global "
        "batch and keeps its share (`AutoShardPolicy.DATA` in "
        "`models/training_step/tensorflow_batches.py`): more workers read no "
        f"faster. One process was measured to read {speed / 1e6:,.2f} million "
        f"target tokens/s on the machine above; {when} Workers that read only "
        "their own rows would mend it; more threads that read help until then."
    )


def _fixed_batch_text(predicted, preset, gpus, gbit):
    few, many = (
        find(
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
        "3. **A batch that must not grow.** With "
        f"{few['global_tokens']:,.0f} tokens an update whatever the number, "
        f"{many['gpus'] / few['gpus']:,.0f} times the GPUs give {gain:.1f} "
        f"times the tokens/s on the fastest network: each of "
        f"{many['gpus']:,.0f} GPUs has {many['tokens_per_replica']:,.0f} "
        "tokens, and overhead and all-reduce stay. A growing batch needs "
        "fewer updates and another learning rate, and from some size on "
        "teaches no more: that is a question of quality, not of this page."
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
        "5. **Stragglers.** An update waits for the slowest replica. One "
        f"worker's updates were measured to deviate by {deviation:.1%}; were "
        "that normal and independent, the slowest of n would be "
        "d √(2 ln n) late: "
        f"{longer:.0%} on {gpus[-1]:,.0f}. Batches of equal shape "
        "(cells) are what keeps replicas level; a slow machine is not "
        "noticed, and is best taken out."
    )

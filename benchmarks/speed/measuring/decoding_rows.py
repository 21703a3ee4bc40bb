"""Compares translations and times of several engines, and makes their rows."""

import statistics

OURS = "keras_deepnmt"
BEFORE = "keras_deepnmt_before"
# Largest relative difference of the log-probabilities of the same model.
TOLERANCE = 1e-3
# Engines that compute our model with our weights in float32.
SAME_MODEL = (BEFORE, "ctranslate2_float32", "huggingface")
# The engine whose weights are its own.
OTHER_WEIGHTS = "joeynmt"
# Sentences whose translations are scored by another engine.
NUM_SCORED = 8


def some_numbers(number):
    """Returns the numbers of a few of `number` sentences, evenly spread.

    >>> list(some_numbers(20))
    [0, 2, 4, 6, 8, 10, 12, 14]
    """
    return range(0, number, max(1, number // NUM_SCORED))[:NUM_SCORED]


def check_same_model(engine, ours, theirs):
    """Refuses an engine that computes another model than ours.

    `ours` and `theirs` are sums of log-probabilities of our translations, by
    our search and by the engine. Raises a `RuntimeError` if they differ.
    """
    difference = abs(sum(theirs) / sum(ours) - 1)
    # Also if it is not a number.
    if not difference <= TOLERANCE:
        raise RuntimeError(
            f"{engine} computes another model: the log-probabilities of our "
            f"translations sum to {sum(theirs):.4f} there, and to "
            f"{sum(ours):.4f} here. They may differ by {TOLERANCE:.1%}. "
            "Nothing was timed."
        )


def check_lengths(engine, rows, length):
    """Refuses translations that are not all of one length in tokens."""
    lengths = {len(row) for row in rows}
    if lengths != {length}:
        raise RuntimeError(
            f"{engine} must make translations of {length} tokens, so that all "
            f"engines do the same work. Received: {sorted(lengths)} tokens."
        )


def equal_tokens(ours, theirs):
    """Returns the share of positions with the same token.

    `ours` has one or several hypotheses of each sentence, of which the nearest
    counts. A position that only one of two translations has is different.

    >>> equal_tokens([[[4, 5], [4, 9]], [[6]]], [[4, 9], [6, 8]])
    0.75
    """
    same = length = 0
    for hypotheses, row in zip(ours, theirs, strict=True):
        found = [
            (sum(map(int.__eq__, one, row)), max(len(one), len(row)))
            for one in hypotheses
        ]
        nearest = max(found, key=lambda pair: pair[0] / max(1, pair[1]))
        same, length = same + nearest[0], length + nearest[1]
    return same / length


def equal_translations(ours, theirs):
    """Returns the share of translations that are among our hypotheses.

    >>> equal_translations([[[4, 5], [4, 9]], [[6]]], [[4, 9], [6, 8]])
    0.5
    """
    pairs = zip(ours, theirs, strict=True)
    return sum(row in hypotheses for hypotheses, row in pairs) / len(ours)


def measure_in_turns(functions, rounds, most_seconds):
    """Times functions alternately; returns the seconds of each, by round.

    `functions` maps names to functions that return seconds. The order is
    reversed in every other round. A function whose measured time exceeds
    `most_seconds` takes part in no further round.
    """
    seconds = {name: [] for name in functions}
    for number in range(rounds):
        names = list(functions)[:: -1 if number % 2 else 1]
        for name in names:
            if sum(seconds[name]) <= most_seconds:
                seconds[name].append(functions[name]())
    return seconds


def time_columns(ours, theirs, sentences, tokens):
    """Returns the columns of an engine's speed, from seconds by round.

    The ratio is our speed divided by the engine's in the same round; rounds
    that only one of them took part in have none.
    """
    ratios = [b / a for a, b in zip(ours, theirs, strict=False)]
    return {
        "rounds": len(theirs),
        **spread("sentences_per_second", [sentences / s for s in theirs], 4),
        **spread("tokens_per_second", [tokens / s for s in theirs], 4),
        **spread("ratio", ratios, 4),
    }


def spread(name, values, digits):
    """Returns columns for median, minimum and maximum.

    They are rounded to `digits` significant digits.

    >>> spread("seconds", [3.14159, 1.0, 2.0], 3)
    {'seconds_median': 2.0, 'seconds_min': 1.0, 'seconds_max': 3.14}
    """
    functions = {"median": statistics.median, "min": min, "max": max}
    return {
        f"{name}_{suffix}": float(f"{function(values):.{digits}g}")
        for suffix, function in functions.items()
    }


def case_rows(first_columns, case, engines):
    """Returns one row for each engine of a case.

    `first_columns` are the same in all rows. `engines` maps names, ours first,
    to dicts with `ids`, rows of tokens without the end; `seconds` by round;
    `peak_mib`; `version`; and, if the translations end by themselves,
    `log_prob_ratio`: the sum of our log-probabilities of the engine's
    translations divided by that of ours. Ours has also `hypotheses`, all rows
    that its search ended with.
    """
    ours = engines[OURS]
    sentences, steps = len(ours["ids"]), case["steps"]
    batches = -(-sentences // case["batch_size"])
    rows = []
    for name, engine in engines.items():
        tokens = steps * sentences
        if not steps:
            tokens = sum(len(row) + 1 for row in engine["ids"])
        median = statistics.median(engine["seconds"])
        rows.append(
            {
                **first_columns,
                "engine": name,
                "engine_version": engine["version"],
                **time_columns(
                    ours["seconds"], engine["seconds"], sentences, tokens
                ),
                "ms_per_step": round(1000 * median / steps / batches, 2)
                if steps
                else "",
                "peak_mib": round(engine["peak_mib"]),
                **_equality(name, ours["hypotheses"], engine, steps),
                "log_prob_ratio": engine.get("log_prob_ratio", ""),
            }
        )
    return rows


def _equality(name, ours, engine, steps):
    """Compares an engine's translations with ours, if it has our weights."""
    functions = (equal_tokens, equal_translations)
    if name == OTHER_WEIGHTS:
        return {function.__name__: "" for function in functions}
    # Our last step is the end token, that of others an ordinary one.
    theirs = [row[: steps - 1 if steps else None] for row in engine["ids"]]
    return {
        function.__name__: round(function(ours, theirs), 4)
        for function in functions
    }


def summary(row):
    """Returns the line that is printed for a row."""
    case = row["size"] or row["workload"]
    if "num_beams" in row:
        case += f", batch {row['batch_size']}, beams {row['num_beams']}"
    if row.get("steps"):
        case += f", steps {row['steps']}"
    if "seconds_median" in row:
        found = f"{row['seconds_median']} s"
    else:
        found = f"{row['tokens_per_second_median']} tokens/s"
        if row["engine"] != OURS:
            found += (
                f", ours {row['ratio_median']} times as fast "
                f"({row['ratio_min']} to {row['ratio_max']})"
            )
        found += f" in {row['rounds']} rounds"
    return f"{case}: {row['engine']} {found}, {row['peak_mib']} MiB"

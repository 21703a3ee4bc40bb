"""What vocabulary shortlists and int8 weights gain, and what they cost.

    python benchmarks/speed/cheaper_decoding.py
    python benchmarks/speed/cheaper_decoding.py --run RUN --shortlist FILE \
        --source test.en --target test.de

First command: a Transformer of base size with random weights and 32,000 tokens,
one batch of 32 random sources, beam 4, 32 steps. Its shortlists are any 2,048
and 8,192 tokens. Second command: a trained run translates a text with the
run's options, and BLEU is that of its recipe. Its shortlists have at most 10,
20 and all of the tokens that FILE has for each source token: a `shortlist.npz`
which `deepnmt prepare` wrote for the run's tokenizers.

int8 is Keras' `quantize("int8")`, which has the weights of dense layers and
embeddings, and computes dense layers with integers.

All are compiled and timed in turns in one process; each translates before the
first round. `ratio` is the speed relative to all tokens in float32, of one
round. One row for each is appended to `results/cheaper_decoding.csv`.
"""

import argparse
import dataclasses
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.speed.measuring.decoding_cases import SIZES, random_case
from benchmarks.speed.measuring.decoding_rows import measure_in_turns, spread

PLAIN = "all tokens, float32"
RESULTS = Path(__file__).parent / "results" / "cheaper_decoding.csv"
NUM_BEAMS, BATCH_SIZE, STEPS = 4, 32, 32
RANDOM_CANDIDATES = (2_048, 8_192)
TARGETS = (10, 20, None)


@dataclasses.dataclass
class Variant:
    """A way to translate: `translate()` returns the translations."""

    name: str
    translate: object
    candidates: int | None = None


def quantized(model):
    """Converts the weights of a model to int8, in place."""
    with warnings.catch_warnings():
        # Keras warns of each layer that has nothing to convert.
        warnings.simplefilter("ignore")
        model.quantize("int8")
    return model


def random_variants():
    """Returns the variants of a model with random weights."""
    import keras

    from keras_deepnmt.decoding import SearchOptions
    from keras_deepnmt.decoding.staged_search import StagedSearch
    from keras_deepnmt.models import Transformer

    sizes = dict(SIZES["base"])
    size = sizes.pop("vocabulary_size")

    def make_model():
        keras.utils.set_random_seed(0)
        return Transformer(size, size, **sizes, share_embeddings=True)

    case = random_case("base", BATCH_SIZE, NUM_BEAMS, STEPS)
    source_ids = np.array(case["sources"], "int32")
    options = SearchOptions(
        num_beams=NUM_BEAMS,
        min_length=STEPS - 1,
        max_length_ratio=0.0,
        max_extra_tokens=STEPS,
    )

    def variant(name, model, number=None):
        search = StagedSearch(model)
        candidates = (
            None if number is None else np.arange(number, dtype="int32")
        )

        def translate():
            found = search(
                source_ids,
                candidate_ids=candidates,
                options=options,
                max_length=STEPS,
            )
            return [str(ids[0].tolist()) for ids in found["ids"]]

        return Variant(name, translate, number)

    model = make_model()
    return [
        variant(PLAIN, model),
        *(variant("shortlist", model, number) for number in RANDOM_CANDIDATES),
        variant("int8", quantized(make_model())),
    ]


def run_variants(run, shortlist, sources):
    """Returns the variants of a trained run."""
    from keras_deepnmt.data import Shortlists
    from keras_deepnmt.translator import Translator

    whole = Shortlists.load(shortlist)

    def variant(name, translator, candidates=None):
        return Variant(name, lambda: translator.translate(sources), candidates)

    variants = [variant(PLAIN, Translator.load(run))]
    for number in TARGETS:
        lists = dataclasses.replace(
            whole, by_source=whole.by_source[:, :number]
        )
        translator = Translator.load(run, shortlists=lists)
        name = f"shortlist, {lists.by_source.shape[1]} a source token"
        candidates = _mean_candidates(translator, lists, sources)
        variants.append(variant(name, translator, candidates))
    translator = Translator.load(run)
    quantized(translator.model)
    return [*variants, variant("int8", translator)]


def _mean_candidates(translator, lists, sources):
    """The mean number of likely tokens of batches of neighbouring lengths."""
    rows = translator.source_tokenizer.encode(sources)
    rows.sort(key=len)
    size = translator.batch_size
    return round(
        statistics.mean(
            len(lists.candidates(rows[start : start + size]))
            for start in range(0, len(rows), size)
        )
    )


def bleu_columns(run, translations, references):
    """Returns BLEU by the run's recipe, and its signature."""
    from keras_deepnmt.evaluation import corpus_scores
    from keras_deepnmt.translator.loading import read_summary

    tokenize = read_summary(run)["evaluation"]["tokenize"]
    found = corpus_scores(translations, references, ["bleu"], tokenize)["bleu"]
    return {"bleu": round(found.value, 2), "signature": found.signature}


def measure(variants, rounds, first_columns, last_columns):
    """Times variants in turns; returns their rows.

    `last_columns` returns the columns that follow from translations.
    """
    found = {}
    for variant in variants:
        found[id(variant)] = variant.translate()  # compiles

    def timed(variant):
        def seconds():
            start = time.perf_counter()
            variant.translate()
            return time.perf_counter() - start

        return seconds

    seconds = measure_in_turns(
        {id(variant): timed(variant) for variant in variants},
        rounds,
        float("inf"),
    )
    plain = variants[0]
    rows = []
    for variant in variants:
        values, expected = seconds[id(variant)], seconds[id(plain)]
        same = [
            one == other
            for one, other in zip(
                found[id(variant)], found[id(plain)], strict=True
            )
        ]
        rows.append(
            {
                **first_columns,
                "variant": variant.name,
                "candidates": variant.candidates or "",
                "sentences": len(same),
                "rounds": rounds,
                **spread(
                    "sentences_per_second", [len(same) / s for s in values], 4
                ),
                **spread(
                    "ratio",
                    [b / a for a, b in zip(values, expected, strict=True)],
                    4,
                ),
                "equal_translations": round(statistics.mean(same), 4),
                **last_columns(found[id(variant)]),
            }
        )
    return rows


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="folder of a trained run")
    parser.add_argument("--shortlist", type=Path, help="file for --run")
    parser.add_argument("--source", type=Path, help="sentences for --run")
    parser.add_argument("--target", type=Path, help="their translations")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    given = (options.run, options.shortlist, options.source, options.target)
    if any(given) and not all(given):
        parser.error(
            "--run, --shortlist, --source, --target: give all or none."
        )
    first = {**provenance("tensorflow", "keras"), "seed": 0}
    if options.run:
        from keras_deepnmt.translator.loading import read_summary

        texts = [
            file.read_text(encoding="utf-8").splitlines()
            for file in (options.source, options.target)
        ]
        summary = read_summary(options.run)
        rows = measure(
            run_variants(options.run, options.shortlist, texts[0]),
            options.rounds,
            {
                **first,
                "workload": summary["name"],
                "updates": summary["steps"],
            },
            lambda found: bleu_columns(options.run, found, texts[1]),
        )
    else:
        rows = measure(
            random_variants(),
            options.rounds,
            {**first, "workload": "random, base size", "updates": ""},
            lambda found: {"bleu": "", "signature": ""},
        )
    append_rows(options.output, rows)
    for row in rows:
        print(
            f"{row['variant']} {row['candidates']}: {row['ratio_median']} "
            f"({row['ratio_min']} to {row['ratio_max']}), "
            f"{row['equal_translations']:.1%} equal, BLEU {row['bleu'] or '-'}"
        )


if __name__ == "__main__":
    main()

"""Measures how often a model copies numbers that it has never seen.

    python benchmarks/quality/number_copying.py --folder runs/number_copying

The text is that of the embedded corpus. In the training set, each sentence with
a cardinal number ("zwei", "two") comes four times more, with made-up numbers of
one to seven digits in the place of the word, on both sides. The quickstart's
recipe is trained on it with `split_digits` false and true. Then 500 sentences
that are not in the training set are translated, each with a number of seven
digits that is in no sentence of it.

Every pair of a seed and a value is one run, whose row is appended to
`results/number_copying.csv`. Called again, it continues where it was.
"""

import argparse
import itertools
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "number_copying.csv"
RECIPE = "transformer_tiny.demo_de_en"
SOURCE_WORDS = "zwei drei vier fünf zehn".split()
TARGET_WORDS = "two three four five ten".split()
TRAIN_PAIRS, VALID_PAIRS, TEST_PAIRS = 25_000, 500, 500
COPIES = 4
LONGEST = 7


def main(arguments: list[str] | None = None) -> None:
    """Trains and tests what has no row yet."""
    options = _parse(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    files = write_corpus(options.folder / "corpus", options.train_pairs)
    for seed, split_digits in itertools.product(options.seeds, (False, True)):
        if str(split_digits).lower() not in options.split_digits:
            continue
        key = {"seed": str(seed), "split_digits": str(split_digits)}
        rows = read_rows(options.output)
        if not any(key.items() <= row.items() for row in rows):
            append_row(
                options.output, measure(seed, split_digits, files, options)
            )


def measure(seed, split_digits, files, options) -> dict:
    """Trains a run, if it is not finished, and returns its row."""
    from keras_deepnmt.evaluation.scores import corpus_scores
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.runs.train import train
    from keras_deepnmt.translator import Translator

    corpora = {
        split: {side: str(files[split, side]) for side in ("source", "target")}
        for split in ("train", "valid", "test")
    }
    recipe = load_recipe(
        RECIPE,
        {
            "seed": seed,
            "data.train": [corpora["train"]],
            "data.valid": corpora["valid"],
            "data.test": corpora["test"],
            "data.split_digits": split_digits,
            **({"training.steps": options.steps} if options.steps else {}),
        },
    )
    digits = "single" if split_digits else "joined"
    run_dir = options.folder / f"{digits}_{seed}"
    summary = train(recipe, run_dir)
    translator = Translator.load(run_dir)
    numbers = read_lines(files["numbers", "target"])
    translations = translator.translate(read_lines(files["numbers", "source"]))
    copied = [
        number_in(reference) in numbers_in(translation)
        for reference, translation in zip(numbers, translations, strict=True)
    ]
    test = translator.translate(read_lines(files["test", "source"]))
    scores = {
        split: corpus_scores(hypotheses, read_lines(files[split, "target"]))
        for split, hypotheses in (("test", test), ("numbers", translations))
    }
    return {
        **provenance("tensorflow", "keras", "sentencepiece", "sacrebleu"),
        "recipe": RECIPE,
        "seed": seed,
        "split_digits": split_digits,
        "parameters": summary["parameters"],
        "updates": summary["steps"],
        "minutes": round(summary["training"]["seconds"] / 60, 1),
        "numbers": len(copied),
        "copied": sum(copied),
        "numbers_bleu": round(scores["numbers"]["bleu"].value, 2),
        "test_sentences": TEST_PAIRS,
        "test_bleu": round(scores["test"]["bleu"].value, 2),
        "signature": scores["test"]["bleu"].signature,
    }


def write_corpus(folder: Path, train_pairs: int = TRAIN_PAIRS) -> dict:
    """Writes the text of all sets and returns the paths of the files."""
    from keras_deepnmt.data.demo import NUM_PAIRS, demo_pairs

    pairs = [(pair.source, pair.target) for pair in demo_pairs(NUM_PAIRS)]
    held_out = VALID_PAIRS + TEST_PAIRS
    train = pairs[held_out : held_out + train_pairs]
    draw = random.Random(1)
    made_up = [
        with_number(pair, made_number(draw, draw.randint(1, LONGEST)))
        for pair in train
        if has_number(pair)
        for _ in range(COPIES)
    ]
    train = [*train, *made_up]
    draw.shuffle(train)
    seen = {number for source, _ in train for number in numbers_in(source)}
    tests = []
    for pair in pairs[held_out + TRAIN_PAIRS :]:
        if has_number(pair) and len(tests) < TEST_PAIRS:
            number = made_number(draw, LONGEST)
            while number in seen:
                number = made_number(draw, LONGEST)
            tests.append(with_number(pair, number))
    sets = {
        "train": train,
        "valid": pairs[:VALID_PAIRS],
        "test": pairs[VALID_PAIRS:held_out],
        "numbers": tests,
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for split, rows in sets.items():
        for number, side in enumerate(("source", "target")):
            files[split, side] = folder / f"{split}.{side}"
            text = "".join(f"{row[number]}\n" for row in rows)
            files[split, side].write_text(text, encoding="utf-8")
    return files


def _one_of(words):
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


_IN_SOURCE, _IN_TARGET = _one_of(SOURCE_WORDS), _one_of(TARGET_WORDS)


def has_number(pair) -> bool:
    """Whether both sides have one cardinal number, and the same one."""
    found = [
        [words.index(match.lower()) for match in pattern.findall(text)]
        for pattern, words, text in zip(
            (_IN_SOURCE, _IN_TARGET),
            (SOURCE_WORDS, TARGET_WORDS),
            pair,
            strict=True,
        )
    ]
    return found[0] == found[1] and len(found[0]) == 1


def with_number(pair, number: str):
    """Puts a number in the place of the cardinal number of both sides."""
    patterns = (_IN_SOURCE, _IN_TARGET)
    return tuple(
        pattern.sub(number, text)
        for pattern, text in zip(patterns, pair, strict=True)
    )


def made_number(draw: random.Random, digits: int) -> str:
    """Draws a number of so many digits; one of a single digit is not 1."""
    lowest = 2 if digits == 1 else 10 ** (digits - 1)
    return str(draw.randrange(lowest, 10**digits))


def numbers_in(text: str) -> list[str]:
    """Returns the numbers of a text that are written in digits."""
    return re.findall(r"\d+", text)


def number_in(text: str) -> str:
    """Returns the only number of a text."""
    (number,) = numbers_in(text)
    return number


def read_lines(file: Path) -> list[str]:
    """Returns the lines of a file."""
    return file.read_text(encoding="utf-8").splitlines()


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("runs/number_copying"),
        help="folder of the text and the runs",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--split-digits",
        nargs="+",
        choices=["false", "true"],
        default=["false", "true"],
    )
    parser.add_argument("--train-pairs", type=int, default=TRAIN_PAIRS)
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

"""Golden sentences: the outputs of an export when it was made."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import parse_json

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer

# TensorFlow's loaders ignore this folder.
GOLDEN_FILE = Path("assets.extra", "golden.jsonl")
EXPORT_FILE = Path("assets.extra", "export.json")
FIELDS = {
    "source": str,
    "text": str,
    "score": float,
    "nbest_text": list,
    "nbest_score": list,
    "target": str,
    "target_log_prob": float,
}
# Of exports that have the signature `translate_given`.
GIVEN_FIELDS = {
    "given_prefix": str,
    "given_phrase": str,
    "given_text": str,
    "given_score": float,
    "given_is_met": bool,
}
# Edge cases of tokenization: empty text, characters that NFKC changes, unknown
# characters, extra white space, and what is read as a space or as nothing.
SPECIAL_SOURCES = (
    "",
    "ﬁｖe ½ ﾊﾝｶｸ",
    "🙂 \u0416",
    "  a\u00a0 b  ",
    "a\tb\u00ad\u200b \v\ufeffc",
)


def default_sources(
    tokenizer: "Tokenizer", num_sentences: int = 12, seed: int = 0
) -> list[str]:
    """Makes sentences of 1, 3, 5, … random pieces, and of special characters.

    The special ones come in addition to `num_sentences`.
    """
    generator = random.Random(seed)
    ids = range(4, tokenizer.vocabulary_size)
    rows = [
        [generator.choice(ids) for _ in range(2 * number + 1)]
        for number in range(num_sentences if len(ids) else 0)
    ]
    return [*tokenizer.decode(rows), *SPECIAL_SOURCES]


def golden_records(
    sources: Sequence[str],
    num_hypotheses: int,
    call: Callable[..., dict],
    max_target_characters: int | None = None,
    finds_phrases: bool = True,
) -> list[dict]:
    """Runs every signature on the golden sentences, for one dict per sentence.

    `call` takes a signature's name and inputs and returns NumPy arrays. All
    sentences form one batch, in the export and in every verification, since
    the batch shape changes the last bits of a float32. `target_log_prob` is
    what the signature `score` returns for `target`, the first
    `max_target_characters` of the translation. Each sentence is also translated
    with what its neighbours' translations begin and, if the search
    `finds_phrases`, end with.
    """
    best = call("serving_default", text=list(sources))
    nbest = call(
        "translate_nbest", text=list(sources), num_hypotheses=num_hypotheses
    )
    texts = [text.decode() for text in best["text"]]
    targets = [text[:max_target_characters] for text in texts]
    scored = call("score", source=list(sources), target=targets)
    prefixes, phrases = _given_texts(targets)
    if not finds_phrases:
        phrases = [""] * len(sources)
    given = call(
        "translate_given",
        text=list(sources),
        prefix=prefixes,
        constraints=[[phrase] for phrase in phrases],
        num_hypotheses=1,
    )
    return [
        {
            "source": source,
            "text": texts[row],
            "score": float(best["score"][row]),
            "nbest_text": [text.decode() for text in nbest["text"][row]],
            "nbest_score": nbest["score"][row].tolist(),
            "target": targets[row],
            "target_log_prob": float(scored["log_prob"][row]),
            "given_prefix": prefixes[row],
            "given_phrase": phrases[row],
            "given_text": given["text"][row, 0].decode(),
            "given_score": float(given["score"][row, 0]),
            "given_is_met": bool(given["constraints_met"][row, 0]),
        }
        for row, source in enumerate(sources)
    ]


def _given_texts(targets):
    """A beginning and a phrase for each sentence; the last are not known."""
    words = [target.split() for target in targets]
    prefixes = [" ".join(row[:1]) for row in words[1:]]
    phrases = [" ".join(row[-1:]) for row in [*words[2:], *words[:1]]]
    return [*prefixes, "🙂"], [*phrases[: len(words) - 1], "\u0416"]


def write_golden(version_dir: str | Path, records: Sequence[dict]) -> None:
    """Writes the `golden_records` into the folder of a SavedModel."""
    file = Path(version_dir, GOLDEN_FILE)
    file.parent.mkdir(exist_ok=True)
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_golden(version_dir: str | Path) -> list[dict]:
    """Reads the golden sentences from the folder of a SavedModel.

    Raises a `UserError` if the file is missing, empty or damaged.
    """
    file = Path(version_dir, GOLDEN_FILE)
    try:
        # Not `splitlines`: a text may have other line ends, such as U+2028.
        with open(file, encoding="utf-8") as lines:
            records = [parse_json(line, f"{file}: damaged") for line in lines]
    except OSError as error:
        raise UserError(
            f"{file}: no golden sentences to read ({error.strerror})."
        ) from error
    for number, record in enumerate(records, start=1):
        fields = FIELDS
        if isinstance(record, dict) and not GIVEN_FIELDS.keys().isdisjoint(
            record
        ):
            fields = FIELDS | GIVEN_FIELDS
        if not isinstance(record, dict) or any(
            not isinstance(record.get(name), kind)
            for name, kind in fields.items()
        ):
            raise UserError(
                f"{file}, line {number}: a golden sentence must have "
                f"{', '.join(fields)}."
            )
    if not records:
        raise UserError(f"{file}: has no golden sentence.")
    return records

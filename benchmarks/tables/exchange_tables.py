"""The tables of models of other toolkits, and of models written for them."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "exchange" / "results"


def torch_table(results: Path = RESULTS) -> list[str]:
    """Returns the blocks of the table of models around `nn.Transformer`."""
    rows = read_rows(results / "torch_transformer.csv")
    rows = newest_rows(rows, "normalize_first", "activation", "tied")
    if not rows:
        return []
    lines = [
        [
            f"{'pre' if row['normalize_first'] == 'True' else 'post'}-norm, "
            f"{row['activation']}, "
            f"{'tied' if row['tied'] == 'True' else 'own'} output, "
            f"`{row['file']}`",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
        ]
        for row in rows
    ]
    last = f"{measured_when_and_where(rows)} torch {rows[0]['torch']}."
    words = newest_rows(
        read_rows(results / "tajik_persian.csv"), "tg2fa_translit"
    )
    for row in words:
        last += (
            " Of tg2fa_translit "
            f"{row['tg2fa_translit']}, a public model from Tajik to Persian "
            f"letters, {int(row['equal_outputs']):,} of "
            f"{int(row['words']):,} words have the same greedy output "
            "(`tajik_persian.py`)."
        )
    return [
        "Models around `torch.nn.Transformer`, by `torch_transformer.py`:",
        markdown_table(["model", "largest difference"], lines),
        last,
    ]


def exchange_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = read_rows(results / "marian_hf.csv")
    rows = newest_rows(rows, "kind", "shared", "activation")
    if not rows:
        return []
    lines = [
        [
            f"`marian-hf`, {row['kind']}, "
            f"{'joint' if row['shared'] == 'True' else 'separate'} "
            f"vocabulary, {row['activation']}",
            f"{int(row['equal_ids']):,} of {int(row['lines']):,}",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
            f"{row['equal_tokens']} of {row['sentences']}"
            + _scores_of_others(row),
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        markdown_table(
            ["model", "equal ids", "largest difference", "equal translations"],
            lines,
        ),
        f"{measured_when_and_where(rows)} transformers {one['transformers']}, "
        f"torch {one['torch']}, {one['updates']} updates.",
    ]


def checkpoint_table(results: Path = RESULTS) -> list[str]:
    """Returns the blocks of the table of checkpoints of other toolkits."""
    joeynmt = read_rows(results / "joeynmt.csv")
    opennmt = read_rows(results / "opennmt_transformers.csv")
    eole = newest_rows(read_rows(results / "eole.csv"), "kind", "shared")
    joeynmt = newest_rows(joeynmt, "kind", "shared")
    opennmt = newest_rows(opennmt, "toolkit", "tied", "activation")
    lines = [
        [
            f"JoeyNMT {row['joeynmt']}, {row['layer_norm']}-norm, "
            f"{row['activation']}, {row['kind']}, "
            f"{'joint' if row['shared'] == 'True' else 'separate'} vocabulary",
            f"{int(row['equal_ids']):,} of {int(row['lines']):,}",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
            f"{row['equal_translations']} of {row['sentences']}",
        ]
        for row in joeynmt
    ]
    lines += [
        [
            f"{row['toolkit']} {row['toolkit_version']}, {row['activation']}, "
            f"{'tied' if row['tied'] == 'True' else 'own'} output"
            + (", subword-nmt" if row["transform"] == "bpe" else ""),
            f"{int(row['equal_ids']):,} of {int(row['lines']):,}",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
            f"{row['equal_translations']} of {row['sentences']}"
            + _scores_of_others(row),
        ]
        for row in opennmt
    ]
    lines += [
        [
            f"eole {row['eole']}, {row['activation']}, {row['output']} output, "
            f"{row['kind']}, "
            f"{'joint' if row['shared'] == 'True' else 'separate'} vocabulary",
            f"{int(row['equal_ids']):,} of {int(row['lines']):,}",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
            f"{row['equal_translations']} of {row['sentences']}"
            + _scores_of_others(row),
        ]
        for row in eole
    ]
    if not lines:
        return []
    return [
        "Models that JoeyNMT, OpenNMT-py and eole trained, by "
        "`joeynmt_transformers.py`, `opennmt_transformers.py` and "
        "`eole_transformers.py`:",
        markdown_table(
            ["model", "equal ids", "largest difference", "equal translations"],
            lines,
        ),
        measured_when_and_where([*joeynmt, *opennmt, *eole]),
    ]


def _scores_of_others(row):
    """Says whose score is higher where translations differ."""
    if not int(row["higher_here"]) + int(row["higher_there"]):
        return ""
    return (
        f"; the score is higher here of {row['higher_here']} others, "
        f"there of {row['higher_there']}"
    )


_MARIAN_DECODERS = {
    "self-attention": "",
    "average-attention": ", average attention",
    "rnn": ", SSRU",
}


def marian_table(results: Path = RESULTS) -> list[str]:
    """Returns the blocks of the table of models that Marian trained."""
    rows = read_rows(results / "marian_npz.csv")
    rows = newest_rows(rows, "kind", "shared", "norm", "decoder")
    if not rows:
        return []
    lines = [
        [
            f"{row['norm']}-norm, {row['activation']}, {row['kind']}, "
            f"{'joint' if row['shared'] == 'True' else 'separate'} vocabulary"
            f"{_MARIAN_DECODERS[row['decoder']]}",
            row["difference_from_scorer"],
            f"{row['as_in_search']} of {row['sentences']}",
            f"{row['equal_translations']} of {row['sentences']}",
            f"{row['higher_here']}, {row['higher_there']}",
            f"{row['bleu_here']}, {row['bleu_there']}",
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        "Models that Marian trained on Multi30k, by `marian_npz.py`:",
        markdown_table(
            [
                "model",
                "largest difference from Marian's scorer",
                "as in Marian's search",
                "equal translations (4 beams)",
                "others with a higher score here, there",
                "BLEU here, there",
            ],
            lines,
        ),
        f"{measured_when_and_where(rows)} pymarian {one['pymarian']}, "
        f"{one['updates']} updates. The first two columns are about the "
        "log-probabilities of Marian's translations, in nats: how far this "
        "package's are from those of Marian's scorer, and how many are within "
        "0.01 of those of Marian's search.",
    ]


def marian_export_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of exports; none without rows."""
    rows = read_rows(results / "marian_hf_export.csv")
    rows = newest_rows(rows, "shared", "activation", "layer_norm_epsilon")
    if not rows:
        return []
    lines = [
        [
            f"{'joint' if row['shared'] == 'True' else 'separate'} "
            f"vocabulary, {row['activation']}, epsilon "
            f"{float(row['layer_norm_epsilon']):.0e}",
            f"{int(row['equal_ids']):,} of {int(row['lines']):,}",
            f"{row['largest_difference']} (logits up to "
            f"{row['largest_logit']})",
            f"{row['equal_tokens']} of {row['sentences']}",
            f"{row['higher_here']}, {row['higher_there']}",
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        "Models exported for MarianMT, by `marian_hf_export.py`:",
        markdown_table(
            [
                "model",
                "equal ids",
                "largest difference",
                "equal translations (4 beams)",
                "others with a higher score here, there",
            ],
            lines,
        ),
        f"{measured_when_and_where(rows)} transformers {one['transformers']}, "
        f"torch {one['torch']}, {one['updates']} updates.",
    ]

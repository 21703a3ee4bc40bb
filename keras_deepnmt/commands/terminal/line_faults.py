"""What may be wrong with a line that is translated, in the words of users."""

NOT_UTF8 = {
    "replace": "not UTF-8; invalid bytes were replaced by U+FFFD.",
    "skip": "not UTF-8; an empty line was written instead.",
}
TRANSLATION_CUT = (
    "the translation was cut at the maximum length, which `--max-length-ratio` "
    "and `--max-extra-tokens` change."
)


def source_cut(max_length: int) -> str:
    """Says that a source has more tokens than are translated."""
    return (
        f"longer than {max_length - 1} tokens, the model's position range; "
        "the rest was not translated."
    )

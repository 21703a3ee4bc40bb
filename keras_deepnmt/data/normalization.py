"""How a text is rewritten before it is cut into pieces.

A rule maps sequences of characters to others. It becomes part of the
tokenizer's SentencePiece model, so that every program that reads the model
applies it. Then several spaces become one, and spaces at both ends of a text
are dropped.
"""

import functools
import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.factored_case import FactoredCase
from keras_deepnmt.data.letter_case import TO_LOWER
from keras_deepnmt.data.text_steps import DropNull, TextStep
from keras_deepnmt.errors import UserError

# Only warnings and errors; it would tell of every rule that is made.
sentencepiece.set_min_log_level(1)

NORMALIZATIONS = ("nfkc", "nfc", "nmt_nfkc", "identity")
CASES = ("kept", "factored")
# The mark that stands for a space in pieces would be taken for one anyway.
_SPACE_MARK = "▁"
# Format characters that only tell how a text is to be shown or broken into
# lines. Not the joiners U+200C and U+200D, which scripts need.
_INVISIBLE = (
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069"
    "\u206a\u206b\u206c\u206d\u206e\u206f\ufeff\ufff9\ufffa\ufffb"
)
# U+0000 cannot be in a rule, see `text_steps.DropNull`.
_FIRST_PLANE = [chr(n) for n in range(1, 0x10000) if not 0xD800 <= n < 0xE000]


class Normalization:
    """A rule by which a text is rewritten before it is cut into pieces.

    `spec` is a SentencePiece `NormalizerSpec` message, and the `steps` come
    before its rule.
    """

    def __init__(self, spec, steps: Sequence[TextStep] = ()):
        self.spec = spec
        self.steps = tuple(steps)
        self._normalizer = sentencepiece.SentencePieceNormalizer(
            normalizer_spec=spec.SerializeToString(),
            add_dummy_prefix=False,
            escape_whitespaces=False,
        )

    def __reduce__(self):
        # Neither the message nor what SentencePiece made of it can be pickled.
        return _read_normalization, (self.spec.SerializeToString(), self.steps)

    @property
    def case(self) -> str:
        """How upper-case letters are read, one of `CASES`."""
        is_factored = any(isinstance(s, FactoredCase) for s in self.steps)
        return "factored" if is_factored else "kept"

    def normalize(self, text: str) -> str:
        """Returns a text as the tokenizer reads it."""
        return self.apply_rule(self.before(text))

    def is_empty(self, text: str) -> bool:
        """Returns whether nothing of a text is left but spaces."""
        return not self.normalize(text).strip(f" {_SPACE_MARK}")

    def before(self, text: str) -> str:
        """Makes the steps that come before the rule."""
        for step in self.steps:
            text = step.before(text)
        return text

    def apply_rule(self, text: str) -> str:
        """Returns a text as the rule rewrites it."""
        return self._normalizer.Normalize(text)

    def is_same(self, other: "Normalization") -> bool:
        """Returns whether both have the same rule."""
        return all(
            getattr(self.spec, name) == getattr(other.spec, name)
            for name in ("precompiled_charsmap", "remove_extra_whitespaces")
        )


def _read_normalization(spec: bytes, steps):
    return Normalization(model_pb2.NormalizerSpec.FromString(spec), steps)


def load_normalization(
    rule: str, case: str = "kept", user_defined_symbols: Sequence[str] = ()
) -> Normalization:
    """Returns the rule of a name or of a file.

    `rule` is one of `NORMALIZATIONS` or the path of a file of rules; a missing
    file or a line that is no rule raises a `UserError`. `case`, one of `CASES`,
    says how upper-case letters are read. `user_defined_symbols` are the texts
    that always are one piece.
    """
    if case not in CASES:
        raise ValueError(
            f"`case` must be one of {', '.join(CASES)}. Received: case={case!r}"
        )
    if rule in NORMALIZATIONS:
        spec = _named(rule, case)
    else:
        spec = _made("user_defined", _read_rules(Path(rule)), case)
    steps = [DropNull()]
    if case == "factored":
        steps.append(FactoredCase(user_defined_symbols))
    return Normalization(spec, steps)


@functools.cache
def _named(name: str, case: str) -> model_pb2.NormalizerSpec:
    makers = {
        "nfkc": _nfkc,
        "nfc": _nfc,
        "nmt_nfkc": lambda: _rules_of_sentencepiece("nmt_nfkc"),
        "identity": dict,
    }
    return _made(name, makers[name](), case)


def _made(
    name: str, rules: dict[str, str], case: str
) -> model_pb2.NormalizerSpec:
    if case == "factored":
        rules = _lower_cased(rules)
    if rules:
        normalizer = sentencepiece.SentencePieceNormalizer(
            norm_map=sorted(rules.items())
        )
    else:
        normalizer = sentencepiece.SentencePieceNormalizer(rule_name="identity")
    spec = model_pb2.NormalizerSpec.FromString(
        normalizer.serialized_normalizer_spec()
    )
    spec.add_dummy_prefix = True  # each word begins with the mark of a space
    spec.remove_extra_whitespaces = True
    spec.escape_whitespaces = True
    spec.name = name
    return spec


def _lower_cased(rules: dict[str, str]) -> dict[str, str]:
    """Adds that upper-case letters with a partner become lower-case."""
    to_lower = str.maketrans(TO_LOWER)
    return TO_LOWER | {
        old: new.translate(to_lower) for old, new in rules.items()
    }


def _nfkc() -> dict[str, str]:
    """Replaces compatibility forms; drops invisible characters."""
    controls = [c for c in _FIRST_PLANE if unicodedata.category(c) == "Cc"]
    return {
        **_rules_of_sentencepiece("nfkc"),
        **_changed("NFKC", _canonical_sequences()),
        **dict.fromkeys([*controls, *_INVISIBLE], ""),
        **_spaces(),
    }


def _nfc() -> dict[str, str]:
    """Composes characters; changes nothing else but white space."""
    sequences = {*_rules_of_sentencepiece("nfkc"), *_canonical_sequences()}
    return {**_changed("NFC", sequences), **_spaces()}


def _changed(form: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = ((text, unicodedata.normalize(form, text)) for text in texts)
    return {old: new for old, new in pairs if old != new}


@functools.cache
def _rules_of_sentencepiece(name: str) -> dict[str, str]:
    # Also of sequences that have a composed form, such as "e" and an accent.
    rules = sentencepiece.SentencePieceNormalizer(rule_name=name).Decompile()
    return dict(rules)


@functools.cache
def _canonical_sequences() -> list[str]:
    """Every sequence that stands for one character, marks in any order.

    SentencePiece has the usual order alone. Windows keyboards for Vietnamese
    write "ậ" as "â" and a dot below.
    """
    found = []
    for letter in map(chr, range(0x30000)):
        # Syllables of Hangul are decomposed by an algorithm, and have none.
        if unicodedata.decomposition(letter)[:1] in ("", "<"):
            continue
        composed = unicodedata.normalize("NFC", letter)
        base, *marks = unicodedata.normalize("NFD", letter)
        for order in itertools.permutations(marks):
            for number in range(len(marks) + 1):
                text = base + "".join(order[:number])
                text = unicodedata.normalize("NFC", text)
                text += "".join(order[number:])
                if unicodedata.normalize("NFC", text) == composed:
                    found.append(text)
    return found


def _spaces() -> dict[str, str]:
    spaces = [c for c in _FIRST_PLANE if c.isspace() and c != " "]
    return dict.fromkeys([*spaces, _SPACE_MARK], " ")


def _read_rules(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"The rule must be one of {', '.join(NORMALIZATIONS)}, or a file "
            f"of rules. Received: {file} ({_reason(error)})."
        ) from error
    rules = {}
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line or line.startswith("#"):
            continue
        try:
            source, target = map(_from_codes, line.split("\t")[:2])
        except ValueError:
            source = target = ""
        if not source or "\0" in source + target:
            raise UserError(
                f"{file}, line {number}: a rule must be the hexadecimal "
                "numbers of one or more characters, a tab, and those of what "
                "replaces them, such as `2026<tab>2E 2E 2E`. "
                f"Received: {line!r}"
            )
        rules[source] = target
    if not rules:
        raise UserError(f"{file}: has no rule. Use the rule `identity`.")
    return rules


def _from_codes(codes: str) -> str:
    text = "".join(
        chr(int(code.removeprefix("U+"), 16)) for code in codes.split()
    )
    text.encode()  # refuses halves of surrogate pairs
    return text


def _reason(error: Exception) -> str:
    is_missing = isinstance(error, OSError) and error.strerror
    return error.strerror if is_missing else "it is not UTF-8"

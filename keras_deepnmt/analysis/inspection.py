"""Looks into a model that translates a sentence: attention, and papers' layers.

The values of figures, for one sentence and its translation, as JSON.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import shown_pieces
from keras_deepnmt.analysis.attention import self_attention_maps
from keras_deepnmt.analysis.dense_nmt import dense_layer_figures
from keras_deepnmt.analysis.figure import Bars, Figure, HeatMap
from keras_deepnmt.analysis.hybrid_self_attention import (
    branch_names,
    gate_figures,
)
from keras_deepnmt.analysis.layer_aggregation import aggregation_figures
from keras_deepnmt.analysis.layer_attention import layer_weight_figures
from keras_deepnmt.analysis.recorded_model import record, recorded_names
from keras_deepnmt.analysis.role_interaction import role_map_figures
from keras_deepnmt.analysis.surface_fusion import surface_share_figures
from keras_deepnmt.analysis.word_alignments import (
    MeanAttention,
    first_word,
    tag_lengths,
    tag_starts,
)
from keras_deepnmt.data.word_units import word_spans
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import BEGIN_ID, END_ID
from keras_deepnmt.models.ensemble import Ensemble

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_DIGITS = 4
# Figures by what a paper added; each function returns none for other models.
_PANELS: dict[str, Callable[[Any], list[Figure]]] = {
    "Hybrid self-attention (Song et al., 2018)": lambda pair: [
        *_branch_maps(pair),
        *gate_figures(pair),
    ],
    "Layer aggregation (Dou et al., 2018)": aggregation_figures,
    "Dense connections (Shen et al., 2018)": dense_layer_figures,
    "Role interaction (Weissenborn et al., 2019)": role_map_figures,
    "Fine-grained layer attention (Liu et al., 2021)": lambda pair: (
        layer_weight_figures(pair.model)
    ),
    "Surface fusion (Liu et al., 2021)": surface_share_figures,
}


class InspectedPair:
    """A sentence with its translation, as a model reads them.

    It has what figures of a single sentence need of an `AnalyzedRun`. The
    translator's tag, if it has one, is before the sentence. `names` are the
    names of all tensors that `record` can return. Models that it makes are kept
    in `recorded`, by the names of their tensors, for other pairs. A side
    without tokens, or with more than the model allows, is refused.
    """

    def __init__(
        self,
        translator: "Translator",
        source: str,
        target: str,
        names: Sequence[str] = (),
        recorded: dict[tuple[str, ...], keras.Model] | None = None,
    ):
        self.names = names
        self._recorded = {} if recorded is None else recorded
        self.model = translator.model
        self._tokenizers = (
            translator.source_tokenizer,
            translator.target_tokenizer,
        )
        self._source = translator.source_tokenizer.encode(
            translator.tagged([source])
        )[0]
        self._target = translator.target_tokenizer.encode(
            translator.tagged_targets([source], [target])
        )[0]
        longest = translator.max_source_length - 1
        for name, ids in (("source", self._source), ("target", self._target)):
            if not 0 < len(ids) <= longest:
                raise UserError(
                    f"`{name}` must have 1 to {longest} tokens. Received: "
                    f"{len(ids)}"
                )

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The model's inputs."""
        return {
            "source_ids": np.array([[*self._source, END_ID]], "int32"),
            "target_ids": np.array([[BEGIN_ID, *self._target]], "int32"),
        }

    @property
    def source_mask(self) -> np.ndarray:
        """Bool array `(1, S)`: all are real tokens."""
        return np.ones((1, len(self._source) + 1), "bool")

    @property
    def target_mask(self) -> np.ndarray:
        """Bool array `(1, T)`: all are real labels."""
        return np.ones((1, len(self._target) + 1), "bool")

    def source_tokens(self, row: int = 0) -> list[str]:
        """The tokens of the sentence as `shown_pieces`, and the end."""
        return shown_pieces(self._tokenizers[0], [*self._source, END_ID])

    def target_tokens(self, row: int = 0) -> list[str]:
        """The tokens of the translation likewise."""
        return shown_pieces(self._tokenizers[1], [*self._target, END_ID])

    def record(
        self, names: Sequence[str], rows: Sequence[int] | None = None
    ) -> dict[str, np.ndarray]:
        """Computes tensors from inside the model, `(1, …)` each."""
        if not names:
            return {}
        key = tuple(names)
        if key not in self._recorded:
            self._recorded[key] = record(self.model, names)
        tensors = self._recorded[key](self.inputs)
        return {
            name: keras.ops.convert_to_numpy(tensor)
            for name, tensor in tensors.items()
        }


class Inspector:
    """Looks into a model for sentences and their translations.

    It keeps what does not depend on the sentence, and is for one translator.

    Attributes:
        warm_up_rows: what a server calls it with before it has clients.
    """

    warm_up_rows: Sequence[tuple[str, str]] = (("a", "a"),)
    _attention: MeanAttention | None = None
    _names: list[str] | None = None

    def __init__(self):
        self._recorded: dict[tuple[str, ...], keras.Model] = {}

    def __call__(
        self, translator: "Translator", pairs: Sequence[tuple[str, str]]
    ) -> list[dict[str, Any]]:
        """Returns values of JSON for each pair.

        They are `source` and `target`, the parts of both texts, each with the
        number of its word, or `None` between words; `links`, pairs of aligned
        words; `attention`, that of tokens to tokens, by which they are aligned,
        or `None`; and `panels`, a title with maps for each paper whose layers
        the model has.
        """
        return [self._inspect(translator, *pair) for pair in pairs]

    def _inspect(self, translator, source, target):
        if self._names is None:
            self._begin(translator.model)
        pair = InspectedPair(
            translator, source, target, self._names, self._recorded
        )
        found: dict[str, Any] = {
            "source": _parts(source),
            "target": _parts(target),
            "links": [],
            "attention": None,
            "panels": _panels(pair),
        }
        if self._attention is None:
            return found
        weights = self._attention(pair.inputs)[0]
        found["attention"] = _as_map(
            HeatMap(
                name="attention",
                title="Attention to the source",
                caption="A row is a token of the translation when it is "
                "predicted, and sums to 1. Mean of the heads of one decoder "
                "block, by which words are aligned.",
                values=weights,
                row_names=pair.target_tokens(),
                column_names=pair.source_tokens(),
                row_label="translation",
                column_label="source",
                unit="weight",
                limits=(0.0, 1.0),
            )
        )
        # Without the tag and the end tokens, as in `align_words`.
        (first,) = tag_lengths(translator, [source])
        of_words = weights[:-1, first:-1]
        if not of_words.size:  # a line of a tag alone
            return found
        best = first + of_words.argmax(-1)
        (tagged,) = translator.tagged([source])
        (tag,) = translator.target_tags([source])
        starts = tag_starts(translator, tag)
        words = translator.source_tokenizer.token_words(tagged, starts[0])
        (tagged,) = translator.tagged_targets([source], [target])
        target_words = translator.target_tokenizer.token_words(
            tagged, starts[1]
        )
        number = first_word(source, tag)
        found["links"] = sorted(
            {
                (number + source_word, target_word)
                for place, column in enumerate(best)
                for source_word in words[column]
                for target_word in target_words[place]
            }
        )
        return found

    def _begin(self, model):
        """Finds what a model has."""
        is_one = not isinstance(model, Ensemble)
        self._names = recorded_names(model) if is_one else []
        try:
            self._attention = MeanAttention(model, None)
        except ValueError:
            # It has no attention to the source.
            self._attention = None


def _panels(pair):
    if isinstance(pair.model, Ensemble):
        return []
    panels = []
    for title, make in _PANELS.items():
        if figures := make(pair):
            panels.append({"title": title, "maps": list(map(_as_map, figures))})
    return panels


def _branch_maps(pair):
    if not branch_names(pair.model)["encoder"]:
        return []
    names = [name for name in pair.names if name.endswith("/weights")]
    return self_attention_maps(pair, pair.record(names), [0])


def _as_map(figure):
    """A heat map, or bars as one, as values of JSON."""
    if isinstance(figure, Bars):
        figure = HeatMap(
            name=figure.name,
            title=figure.title,
            caption=figure.caption,
            values=np.array(list(figure.series.values())).T,
            row_names=figure.names,
            column_names=list(figure.series),
            row_label=figure.x_label,
            column_label="",
            unit=figure.y_label,
        )
    return {
        "title": figure.title,
        "caption": figure.caption,
        "row_label": figure.row_label,
        "column_label": figure.column_label,
        "unit": figure.unit,
        "row_names": list(figure.row_names),
        "column_names": list(figure.column_names),
        "values": [list(map(_number, row)) for row in figure.values],
        "limits": _limits(figure),
    }


def _limits(figure):
    if figure.limits is not None:
        return list(figure.limits)
    finite = figure.values[np.isfinite(figure.values)]
    # From 0: a value that is half as large is half as dark.
    low = min(0.0, float(finite.min(initial=0.0)))
    return [low, float(finite.max(initial=0.0))]


def _number(value):
    return round(float(value), _DIGITS) if np.isfinite(value) else None


def _parts(text):
    """Cuts a text into words with their numbers, and what is between them."""
    parts: list[tuple[str, int | None]] = []
    at = 0
    for number, (begin, end) in enumerate(word_spans(text)):
        if at < begin:
            parts.append((text[at:begin], None))
        parts.append((text[begin:end], number))
        at = end
    if at < len(text):
        parts.append((text[at:], None))
    return parts

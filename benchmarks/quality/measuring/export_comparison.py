"""Compares the translations of an export with those of a translator."""

from dataclasses import dataclass

import numpy as np

from keras_deepnmt.decoding import SearchOptions, score_targets
from keras_deepnmt.decoding.ranking import score_divisor
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.serving.clients import SavedModelClient
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator.batches import length_batches, padded_batch
from keras_deepnmt.xla.compiled import compile_for

# Two translations whose scores differ by at most this may swap ranks. Scores
# of one translation by a plain graph and by a compiled one differ by 1.2e-5
# (measured); this is about ten times as much.
NEAR_TIE = 1e-4
# A tie may also occur during the search: if a hypothesis is pruned by a tiny
# margin, the final translations may have very different scores. Then one
# search finds both if noise of the size of rounding errors is added to each
# token's log-probability.
ROUNDING = 1e-5
NUM_NOISY_SEARCHES = 64


@dataclass(frozen=True)
class Difference:
    """A sentence that the SavedModel and the compiled search differ on.

    Attributes:
        source: the sentence.
        served: the translation of the SavedModel.
        compiled: the translation of the compiled search.
        served_score, compiled_score: their scores, both by `score_targets`.
        noise_gives_both: whether the served graph finds both if noise of at
            most 1e-5 is added to the tokens' log-probabilities.
    """

    source: str
    served: str
    compiled: str
    served_score: float
    compiled_score: float
    noise_gives_both: bool = False

    @property
    def is_near_tie(self) -> bool:
        gap = abs(self.served_score - self.compiled_score)
        return gap <= NEAR_TIE or self.noise_gives_both

    def __str__(self) -> str:
        kind = "near tie" if self.is_near_tie else "DIFFERENT"
        return (
            f"{kind}: {self.source!r}\n"
            f"  served   {self.served_score:.6f} {self.served!r}\n"
            f"  compiled {self.compiled_score:.6f} {self.compiled!r}"
        )


@dataclass(frozen=True)
class ParityReport:
    """The agreement of a SavedModel, its graph in Python and compiled search.

    Attributes:
        num_sentences: number of sentences translated.
        graph_differences: `(source, served, same graph in Python)` of the
            sentences where the last two are not the same string.
        differences: one for each sentence where served and compiled
            translation are not the same string.
    """

    num_sentences: int
    graph_differences: tuple[tuple[str, str, str], ...]
    differences: tuple[Difference, ...]

    @property
    def identical_to_graph(self) -> int:
        return self.num_sentences - len(self.graph_differences)

    @property
    def identical_to_compiled(self) -> int:
        return self.num_sentences - len(self.differences)

    @property
    def near_ties(self) -> int:
        return sum(difference.is_near_tie for difference in self.differences)

    @property
    def other_differences(self) -> int:
        return len(self.differences) - self.near_ties

    def __str__(self) -> str:
        lines = [
            f"Of {self.num_sentences} sentences the SavedModel translates "
            f"{self.identical_to_graph} like the same graph in Python and "
            f"{self.identical_to_compiled} like the compiled search; of the "
            f"others {self.near_ties} are near ties (scores within "
            f"{NEAR_TIE:g}, or both found with noise of {ROUNDING:g}) and "
            f"{self.other_differences} are not.",
            *(
                f"GRAPH: {source!r}\n  served {served!r}\n  Python {graph!r}"
                for source, served, graph in self.graph_differences
            ),
            *map(str, self.differences),
        ]
        return "\n".join(lines)


def compare_translations(saved_model_dir, translator, sentences, on_progress):
    """Translates with a SavedModel, its graph in Python and compiled search.

    All three translate the same batches, sorted by length, with the options of
    the export.

    Args:
        saved_model_dir: folder that `export` wrote for the translator.
        translator: the translator, with the weights that were exported.
        sentences: list of strings.
        on_progress: called with the number of sentences just done.

    Returns:
        `ParityReport` with the counts and all differences.
    """
    searches = _ThreeSearches(saved_model_dir, translator)
    graph_differences, differences = [], []
    for batch in _batches(translator, sentences):
        served, in_python, compiled = searches.translate(batch)
        for row, source in enumerate(batch):
            texts = (served[row], in_python[row], compiled[row].text)
            if texts[0] != texts[1]:
                graph_differences.append((source, *texts[:2]))
            if texts[0] != texts[2]:
                scores = searches.scores(
                    batch, row, texts[0], compiled[row].ids
                )
                noise_gives_both = {texts[0], texts[2]} <= searches.noisy_texts(
                    source
                )
                differences.append(
                    Difference(
                        source, texts[0], texts[2], *scores, noise_gives_both
                    )
                )
        on_progress(len(batch))
    return ParityReport(
        len(sentences), tuple(graph_differences), tuple(differences)
    )


def _batches(translator, sentences):
    lengths = list(map(len, translator.source_tokenizer.encode(sentences)))
    return [
        [sentences[number] for number in numbers]
        for numbers in length_batches(
            lengths, translator.batch_size, translator.batch_tokens
        )
    ]


class _ThreeSearches:
    """The SavedModel, its graph in Python, and the compiled search."""

    def __init__(self, saved_model_dir, translator):
        self.client = SavedModelClient(saved_model_dir)
        description = self.client.description
        options = SearchOptions.from_mapping(description)
        self.graph = ServingGraph(translator, **options.as_dict())
        self.compiled = translator.replaced(
            compiled=True,
            max_source_length=description["max_source_length"],
            options=options,
        )
        noisy = ServingGraph(translator, **options.as_dict())
        noisy.model = _NoisyModel(translator.model)
        self.search = _search_function(self.graph)
        self.noisy_search = _search_function(noisy)
        self.score_targets = compile_for(
            translator.model, score_targets, jit_compile=False
        )

    def translate(self, batch):
        import tensorflow as tf

        default = self.graph.signatures["serving_default"]
        in_python = default(tf.constant(batch))["text"].numpy()
        nbest = self.compiled.translate_nbest(batch, 1)
        return (
            self.client.translate(batch),
            [text.decode() for text in in_python],
            [hypotheses[0] for hypotheses in nbest],
        )

    def noisy_texts(self, source):
        """Translates one sentence many times, with noise in each search."""
        import tensorflow as tf

        outputs = self.noisy_search(tf.fill((NUM_NOISY_SEARCHES,), source))
        return {text.decode() for text in outputs["text"][:, 0].numpy()}

    def scores(self, batch, row, served, compiled_ids):
        """Scores the served and the compiled translation in the same way."""
        import tensorflow as tf

        outputs = self.search(tf.constant(batch))
        ids = outputs["ids"][row, 0].numpy()
        if outputs["text"][row, 0].numpy().decode() != served:
            ids = self.compiled.target_tokenizer.encode([served])[0]
            ids = [*ids, END_ID]
        rows = [
            [i for i in target_ids if i != PADDING_ID]
            for target_ids in (ids, compiled_ids)
        ]
        lengths = np.array(list(map(len, rows)))
        labels = padded_batch(rows, 2, lengths.max())
        inputs = [[BEGIN_ID, *target[:-1]] for target in rows]
        source = self.compiled.source_tokenizer.encode([batch[row]])[0]
        source = source[: self.compiled.max_source_length - 1]
        log_probs = self.score_targets(
            np.array([[*source, END_ID]] * 2, "int32"),
            padded_batch(inputs, 2, lengths.max()),
            labels,
        ).sum(axis=1)
        divisors = score_divisor(
            lengths, self.graph.length_penalty, self.graph.length_offset
        )
        return (log_probs / np.asarray(divisors)).tolist()


def _search_function(graph):
    import tensorflow as tf

    @tf.function(
        input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False
    )
    def search(text):
        return graph.search(text, graph.length_penalty)

    return search


class _NoisyModel:
    """A model with uniform noise of at most `ROUNDING` in `log_probs`."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        return getattr(self.model, name)

    def log_probs(self, scores):
        import tensorflow as tf

        log_probs = self.model.log_probs(scores)
        return log_probs + tf.random.uniform(
            tf.shape(log_probs), -ROUNDING, ROUNDING, seed=0
        )

"""The small models that `claims.py` trains, and what is measured on them.

Only public names of the package are used.
"""

import functools
import time

import keras
import numpy as np

from benchmarks.quality.measuring.small_corpora import (
    SmallCorpus,
    fit,
    prepare_demo,
)
from keras_deepnmt import Translator
from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.masks import END_ID, padding_mask
from keras_deepnmt.models import Transformer
from keras_deepnmt.training import Adam, DecayToZero

# The small Transformer of the embedded corpus (`transformer_tiny.demo_de_en`).
DIMENSIONS = dict(
    hidden_dim=128,
    intermediate_dim=256,
    num_heads=2,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
    normalize_first=True,
    share_embeddings=True,
)
BATCH_TOKENS = 1_200
WARMUP_STEPS = 200
PEAK_RATE = 0.0035
LABEL_SMOOTHING = 0.05


class DemoCorpus(SmallCorpus):
    """The embedded corpus, prepared once in `folder` for all models."""

    def __init__(self, folder):
        self.pairs = prepare_demo(folder)
        super().__init__(folder, BATCH_TOKENS, max_shapes=1)

    @functools.cached_property
    def functions_of_der(self):
        """Every "der" of the test set that is a token of its own.

        Returns the rows of ids, and a list of `(row, position, function)`.
        """
        tokenizer = self.data.source_tokenizer
        pairs = self.pairs["test"]
        rows = tokenizer.encode([pair.source for pair in pairs])
        places = []
        for row, pair in enumerate(pairs):
            pieces = tokenizer.pieces(rows[row])
            starts = [p for p, x in enumerate(pieces) if x.startswith("▁")]
            words = pair.source.split()
            for role in pair.roles:
                position = starts[role.token_index]
                # "Der" is excluded: all counted ones are the same token, so
                # that the token does not reveal the function.
                is_der = words[role.token_index] == "der"
                if is_der and pieces[position] == "▁der":
                    places.append((row, position, role.function))
        return rows, places


def make_model(corpus, seed, **options):
    """Builds a small model; the seed determines its weights.

    `options` are arguments of `models.Transformer` besides the dimensions.
    """
    keras.utils.set_random_seed(seed)
    sizes = corpus.vocabulary_sizes
    return Transformer(*sizes, **{**DIMENSIONS, **options})


def train(corpus, model, seed, updates, rate=None, callbacks=()):
    """Trains a model; returns the seconds.

    The order of batches depends on the seed alone. The learning rate defaults
    to a linear warm-up followed by a linear decay to zero.
    """
    start = time.monotonic()
    rate = rate or DecayToZero(PEAK_RATE, min(WARMUP_STEPS, updates), updates)
    model.compile(
        Adam(rate, beta_2=0.98),
        loss=LabelSmoothedCrossEntropy(LABEL_SMOOTHING),
    )
    fit(corpus, model, seed, updates, callbacks=callbacks)
    return time.monotonic() - start


def scores(corpus, model):
    """Returns the validation loss and the validation BLEU of a model.

    The loss is in nats per token; BLEU is of greedy translations.
    """
    data = corpus.data
    translator = Translator(
        model,
        data.source_tokenizer,
        data.target_tokenizer,
        num_beams=1,
        batch_size=100,
        compiled=False,
    )
    sources, references = data.texts("valid")
    hypotheses = translator.translate(sources)
    return {
        "valid_loss": model.evaluate(
            corpus.validation(), return_dict=True, verbose=0
        )["loss"],
        "valid_bleu": corpus_scores(hypotheses, references, ["bleu"])[
            "bleu"
        ].value,
    }


def roles_of_der(corpus, model, batch_size=200):
    """Returns the functions of every "der", and the numbers of its roles.

    A role is the most probable one of the model's source-side
    `RoleInteraction`.
    """
    rows, places = corpus.functions_of_der
    longest = max(map(len, rows)) + 1
    ids = np.zeros((len(rows), longest), "int32")
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens) + 1] = [*tokens, END_ID]
    numbers = []
    for start in range(0, len(ids), batch_size):
        part = ids[start : start + batch_size]
        embeddings = model.embedding_scale(model.source_embedding(part))
        _, roles = model.source_embedding_layer(
            embeddings, padding_mask=padding_mask(part), return_roles=True
        )
        numbers.append(np.argmax(roles, axis=-1))
    numbers = np.concatenate(numbers)
    functions = [function for _, _, function in places]
    return functions, [int(numbers[row, p]) for row, p, _ in places]


def diversity_of_layers(corpus, model):
    """Measures how different the outputs of adjacent blocks are.

    Returns the means for encoder and decoder of `1 - cos^2`, over the real
    positions and the pairs of adjacent blocks.
    """
    stacks = {
        "encoder": (model.encoder_blocks, "source_ids"),
        "decoder": (model.decoder_blocks, "target_ids"),
    }
    means = {}
    for side, (blocks, name) in stacks.items():
        states = keras.Model(model.inputs, [b.output for b in blocks])
        total, count = 0.0, 0
        for inputs, _ in corpus.validation():
            real = np.asarray(inputs[name]) != 0
            values = [np.asarray(x)[real] for x in states(inputs)]
            for lower, upper in zip(values[:-1], values[1:], strict=True):
                total += _one_minus_squared_cosine(lower, upper).sum()
                count += len(lower)
        means[f"{side}_diversity"] = float(total / count)
    return means


def _one_minus_squared_cosine(one, other):
    dot = np.sum(one * other, axis=-1)
    return 1 - dot**2 / (np.sum(one**2, axis=-1) * np.sum(other**2, axis=-1))

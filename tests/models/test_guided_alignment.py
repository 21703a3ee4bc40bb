"""What must be true of guided alignment: the posteriors are those of the
equations, written with loops; the loss is theirs; training with it makes
attention follow the words; what cannot be guided is refused."""

import keras
import numpy as np
import pytest

from keras_deepnmt.models import AlignmentModel, GuidedAlignment, Transformer
from keras_deepnmt.models.training_step.alignment_model import TranslationTable
from keras_deepnmt.training import learn_alignment_model

# Word n is translated by n + 10; of each two words the second comes first.
generator = np.random.default_rng(2)
SOURCES = [
    generator.choice(np.arange(4, 14), size, replace=False).tolist()
    for size in generator.integers(2, 6, 300)
]
ORDERS = [
    [n ^ 1 if n ^ 1 < len(row) else n for n in range(len(row))]
    for row in SOURCES
]
PAIRS = [
    (row, [row[n] + 10 for n in order])
    for row, order in zip(SOURCES, ORDERS, strict=True)
]
SIZES = 14, 24


def padded(rows, length):
    return np.array([[*row, *[0] * (length - len(row))] for row in rows], "int")


SOURCE_IDS = padded([[*source, 3] for source, _ in PAIRS[:24]], 7)
LABELS = padded([[*target, 3] for _, target in PAIRS[:24]], 6)
TARGET_IDS = padded([[2, *target] for _, target in PAIRS[:24]], 6)
INPUTS = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}


def one_direction(table, given, words, tension):
    """Dyer et al. (2013), Section 2: p(i | j) with loops."""
    found = np.zeros((len(words), len(given)))
    for j, word in enumerate(words, 1):
        near = [
            np.exp(-tension * abs(i / len(given) - j / len(words)))
            for i in range(1, len(given) + 1)
        ]
        joint = []
        for i, other in enumerate(given):
            known = dict(
                zip(table.ids[other], table.probabilities[other], strict=True)
            )
            joint.append(0.92 * near[i] / sum(near) * known.get(word, 0.0))
        total = sum(joint) + 0.08 * table.empty[word]
        found[j - 1] = np.array(joint) / total if total else 0.0
    return found


def random_table(size, other):
    draw = np.random.default_rng(size)
    ids = np.stack([draw.permutation(other)[:5] for _ in range(size)])
    return TranslationTable(
        ids.astype("int32"),
        draw.random((size, 5)).astype("float32"),
        draw.random(other).astype("float32"),
    )


def test_posteriors_are_those_of_the_papers():
    alignments = AlignmentModel(
        random_table(14, 24), random_table(24, 14), tension=3.0
    )
    found = keras.ops.convert_to_numpy(
        alignments.posteriors(SOURCE_IDS, LABELS)
    )
    assert found.shape == (24, 6, 7)
    for row, (source, target) in enumerate(PAIRS[:24]):
        forward = one_direction(alignments.forward, source, target, 3.0)
        backward = one_direction(alignments.backward, target, source, 3.0)
        expected = np.zeros((6, 7))
        expected[: len(target), : len(source)] = forward * backward.T
        np.testing.assert_allclose(found[row], expected, rtol=1e-5, atol=1e-7)


@pytest.fixture(scope="module")
def alignments():
    return learn_alignment_model(PAIRS, *SIZES)


def test_translations_are_learned_in_both_directions(alignments):
    assert alignments.forward.ids[4:14, 0].tolist() == [*range(14, 24)]
    assert alignments.backward.ids[14:24, 0].tolist() == [*range(4, 14)]
    links = keras.ops.convert_to_numpy(
        alignments.posteriors(SOURCE_IDS, LABELS)
    )
    for row, order in zip(links, ORDERS[:24], strict=True):
        length = len(order)
        assert row[:length].argmax(-1).tolist() == order
        # Padding and the end are linked with nothing.
        assert not row[length:].any() and not row[:, length:].any()


def test_only_the_last_sentence_of_a_context_is_linked():
    """Whatever stands before the last mark, the links are the same."""
    mark = 13
    pairs = [(s, t) for s, t in PAIRS if mark not in s]
    before = [source for source, _ in reversed(pairs)]
    in_context = [
        ([*one, mark, *source] if row % 3 else source, target)
        for row, (one, (source, target)) in enumerate(
            zip(before, pairs, strict=True)
        )
    ]
    alone = learn_alignment_model(pairs, *SIZES)
    found = learn_alignment_model(in_context, *SIZES, mark=mark)
    np.testing.assert_array_equal(found.forward.ids, alone.forward.ids)
    labels = padded([[*target, 3] for _, target in pairs[:24]], 6)
    expected, links = (
        keras.ops.convert_to_numpy(
            model.posteriors(
                padded([[*s, 3] for s, _ in given[:24]], 14), labels
            )
        )
        for model, given in ((alone, pairs), (found, in_context))
    )
    for row, (source, _) in enumerate(in_context[:24]):
        start = len(source) - len(pairs[row][0])
        assert not links[row, :, :start].any()
        np.testing.assert_allclose(
            links[row, :, start:], expected[row, :, : 14 - start], rtol=1e-5
        )


def small_model(**options):
    keras.utils.set_random_seed(5)
    return Transformer(*SIZES, 16, 32, 2, 1, 2, dropout=0.0, **options)


def fixed_loss(labels, log_probs):
    return 0.0 * log_probs[..., 0] + 1.0


@pytest.mark.parametrize(
    "layer", [None, pytest.param(1, marks=pytest.mark.thorough)]
)
def test_the_loss_is_that_of_the_paper(alignments, layer):
    model = small_model()
    term = GuidedAlignment(alignments, weight=0.5, layer=layer)
    # Another test compiles it, and those of replicas and of JAX.
    model.compile("sgd", fixed_loss, objective_terms=[term], jit_compile=False)
    with model.attention_recorder():
        model(INPUTS, training=False)
    weights = keras.ops.convert_to_numpy(
        model.attention_to_source[layer - 1 if layer else 1]
    )
    links = keras.ops.convert_to_numpy(
        alignments.posteriors(SOURCE_IDS, LABELS)
    )
    guide = -np.sum(links * np.log(weights.mean(1) + 1e-12), -1)
    real = LABELS != 0
    expected = 1.0 + 0.5 * guide[real].sum() / real.sum()
    logs = model.train_on_batch(INPUTS, LABELS, return_dict=True)
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_links_of_a_target_token_share_its_probability():
    model = small_model()
    term = GuidedAlignment(weight=0.5)
    model.compile("sgd", fixed_loss, objective_terms=[term], jit_compile=False)
    with model.attention_recorder():
        model(INPUTS, training=False)
    mean = keras.ops.convert_to_numpy(model.attention_to_source[1]).mean(1)
    given = np.zeros((24, 6, 7), "uint8")
    given[0, 0, 1] = 1
    given[0, 1, [0, 2, 3]] = 1  # the other tokens have no link
    guide = -np.log(mean[0, 0, 1]) - np.log(mean[0, 1, [0, 2, 3]]).mean()
    batch = {**INPUTS, "alignments": given}, LABELS
    expected = 1.0 + 0.5 * guide / (LABELS != 0).sum()
    # As a dataset and as arrays.
    for data in ((iter([batch]), None), (*batch, 24)):
        copy = small_model()
        copy.set_weights(model.get_weights())
        copy.compile(
            "sgd", fixed_loss, objective_terms=[term], jit_compile=False
        )
        steps = {"steps_per_epoch": 1} if data[1] is None else {}
        logs = copy.fit(*data, verbose=0, **steps).history
        assert logs["loss"] == pytest.approx([expected], rel=1e-5)
    with pytest.raises(ValueError, match="needs `alignments`, or inputs with"):
        model.train_on_batch(INPUTS, LABELS)


@pytest.mark.thorough
def test_guided_attention_aligns_words(alignments):
    hits = {}
    for weight in (0.0, 1.0):
        model = small_model()
        term = GuidedAlignment(alignments, weight)
        model.compile(
            keras.optimizers.Adam(0.01), fixed_loss, objective_terms=[term]
        )
        for _ in range(30):
            model.train_on_batch(INPUTS, LABELS)
        with model.attention_recorder():
            model(INPUTS, training=False)
        mean = keras.ops.convert_to_numpy(model.attention_to_source[-1]).mean(1)
        hits[weight] = np.mean(
            [
                mean[row, place].argmax() == linked
                for row, order in enumerate(ORDERS[:24])
                for place, linked in enumerate(order)
            ]
        )
    assert hits[1.0] > 0.9 > hits[0.0]


def test_what_cannot_be_guided_is_refused(alignments):
    with pytest.raises(ValueError, match="`weight` must be finite"):
        GuidedAlignment(alignments, weight=-1.0)
    model = small_model()
    with pytest.raises(ValueError, match="`layer` 1 to 2. Received: layer=3"):
        model.compile(
            "sgd", objective_terms=[GuidedAlignment(alignments, layer=3)]
        )
    with pytest.raises(ValueError, match="`activation_checkpointing` does not"):
        model.compile(
            "sgd",
            objective_terms=[GuidedAlignment(alignments)],
            activation_checkpointing=True,
        )

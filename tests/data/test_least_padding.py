"""Chosen batch shapes have hardly more padding than is possible at all.

* The limit that they are compared with is below the optimum, and close to it.
* The batch shapes of the demo corpus and of Multi30k are close to the limit;
  12 % of padding take 9 shapes in the demo corpus, and 6 % take 27 in Multi30k.

The tokens of a batch and the vocabularies are fixed here. The fewer tokens a
batch has, the more of the padding comes from whole rows, which the limit does
not count.
"""

import itertools
import time

import numpy as np
import pytest
from padding_bound import least_padding

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.demo import write_demo_corpus
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes import load_recipe


def prepared_lengths(recipe, folder, data_dir=None):
    prepare_corpus(recipe.data, folder, data_dir=data_dir, progress=False)
    return PreparedData(folder).store("train").lengths[:]


def padding_of(lengths, batch_tokens, max_shapes):
    shapes = choose_batch_shapes(lengths, batch_tokens, max_shapes)
    return BatchPlan(lengths, shapes).padding_fraction


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_demo_corpus(folder, num_train=40_000, num_test=50)
    train, test = (
        {"source": f"{folder}/{split}.de", "target": f"{folder}/{split}.en"}
        for split in ("train", "test")
    )
    changes = {"data.train": [train], "data.test": test}
    changes["data.vocabulary_size"] = 3_000
    recipe = load_recipe("transformer_tiny.demo_de_en", changes)
    return prepared_lengths(recipe, folder / "prepared"), 4_500


@pytest.fixture(scope="module")
def multi30k(corpora_dir, tmp_path_factory):
    recipe = load_recipe(
        "transformer_tiny.multi30k_en_de", {"data.vocabulary_size": 5_000}
    )
    folder = tmp_path_factory.mktemp("multi30k") / "prepared"
    return prepared_lengths(recipe, folder, corpora_dir), 4_700


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_shapes", [1, 2, 3])
def test_the_limit_is_just_below_the_optimum(num_shapes, seed):
    lengths = np.random.default_rng(seed).integers(2, 7, (41, 2))
    corners = np.array(list(itertools.product(range(2, 7), repeat=2)))
    padding = corners.sum(axis=1)[None] - lengths.sum(axis=1)[:, None]
    fits = (lengths[:, None] <= corners[None]).all(axis=2)
    padding = np.where(fits, padding, 1_000)
    tokens = min(
        padding[:, chosen].min(axis=1).sum()
        for chosen in itertools.combinations(range(len(corners)), num_shapes)
    )
    best = tokens / (tokens + lengths.sum())
    limit = least_padding(lengths, num_shapes, best)
    assert 0.97 * best <= limit <= best + 1e-6


@pytest.mark.thorough
def test_four_shapes_of_the_demo_corpus_have_hardly_more_than_the_least(demo):
    padding = padding_of(*demo, 4)
    assert 0.239 < least_padding(demo[0], 4, padding) < padding < 0.242


@pytest.mark.thorough
def test_nine_shapes_of_the_demo_corpus_have_less_than_twelve_percent(demo):
    assert padding_of(*demo, 9) < 0.12


@pytest.mark.thorough
def test_shapes_of_multi30k_have_hardly_more_padding_than_the_least(multi30k):
    start = time.process_time()
    padding = padding_of(*multi30k, 12)
    assert time.process_time() - start < 5
    assert 0.095 < least_padding(multi30k[0], 12, padding) < padding < 0.098


@pytest.mark.thorough
def test_27_shapes_of_multi30k_have_less_than_six_percent(multi30k):
    assert padding_of(*multi30k, 27) < 0.06

"""What must be true of padding, and of the least padding that is possible.

* The limit is never above the optimum, and close to it.
* The batch shapes of the demo corpus and of Multi30k are close to the limit;
  12 % of padding take 9 shapes in the demo corpus, and 6 % take 27 in Multi30k.
* The parts of the padding add up.
"""

import itertools

import numpy as np
import pytest

from benchmarks.shared.recipe_data import DEMO, prepare_recipe
from benchmarks.speed.measuring.padding_bound import least_padding
from benchmarks.speed.padding import measure

MULTI30K = "transformer_tiny.multi30k_en_de"
# The tokens of a batch and the vocabularies are fixed here.
# The fewer tokens a batch has, the more of the padding comes from whole rows,
# which the limit does not count.


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    _, data = prepare_recipe(DEMO, folder, {"data.vocabulary_size": 3_000})
    return data.store("train").lengths[:], 4_500


@pytest.fixture(scope="module")
def multi30k(corpora_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("multi30k")
    _, data = prepare_recipe(MULTI30K, folder, {"data.vocabulary_size": 5_000})
    return data.store("train").lengths[:], 4_700


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


def test_four_shapes_of_the_demo_corpus_have_hardly_more_than_the_least(demo):
    row = measure(*demo, max_shapes=4)
    least = least_padding(demo[0], 4, row["padding"])
    assert 0.239 < least < row["padding"] < 0.242
    parts = ("source_padding", "target_padding", "row_padding")
    assert sum(row[part] for part in parts) == pytest.approx(
        row["padding"], abs=1e-4
    )
    assert 0 < row["row_padding"] < 0.003


def test_nine_shapes_of_the_demo_corpus_have_less_than_twelve_percent(demo):
    assert measure(*demo, max_shapes=9)["padding"] < 0.12


def test_shapes_of_multi30k_have_hardly_more_padding_than_the_least(multi30k):
    row = measure(*multi30k, max_shapes=12)
    least = least_padding(multi30k[0], 12, row["padding"])
    assert 0.095 < least < row["padding"] < 0.098
    assert row["search_seconds"] < 5


def test_27_shapes_of_multi30k_have_less_than_six_percent(multi30k):
    assert measure(*multi30k, max_shapes=27)["padding"] < 0.06

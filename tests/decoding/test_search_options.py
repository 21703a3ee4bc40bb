"""What must be true of the options of a search.

* ids of another shape than one row per sentence are refused
* they are checked wherever they come from, and a wrong one is named
* an object that has them reads and sets each as an attribute of its own
* files without an option mean its default
* all groups have the same number of beams, in every search with groups
"""

import re

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.decoding import SearchOptions, beam_search, greedy_search
from keras_deepnmt.decoding.options import SearchOptionAttributes
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes import load_recipe

SOURCES = np.array([[4, 9, 3]], "int32")


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"num_beams": 0}, ValueError),
        ({"num_beams": 2.5}, ValueError),
        ({"num_beams": "4"}, TypeError),
        ({"num_beams": None}, TypeError),
        ({"length_penalty": -0.1}, ValueError),
        ({"length_penalty": float("nan")}, ValueError),
        ({"length_offset": float("inf")}, ValueError),
    ],
)
def test_a_wrong_value_is_refused_by_name(wrong, error):
    (name,) = wrong
    with pytest.raises(error, match=f"`{name}` must be"):
        SearchOptions(**wrong)


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_a_search_refuses_what_is_no_option(search):
    with pytest.raises(TypeError, match="num_beems"):
        search(ToyModel(), SOURCES, max_length=3, num_beems=2)


def test_greedy_search_takes_no_beams():
    with pytest.raises(TypeError, match="num_beams"):
        greedy_search(ToyModel(), SOURCES, max_length=3, num_beams=2)


@pytest.mark.parametrize("search", [beam_search, greedy_search])
@pytest.mark.parametrize("wrong", [SOURCES[0], SOURCES[None], [4, 9, 3]])
def test_ids_of_one_sentence_without_its_row_are_refused(search, wrong):
    shape = re.escape(str(np.shape(wrong)))
    with pytest.raises(ValueError, match=f"`source_ids` must have.*{shape}"):
        search(ToyModel(), wrong, max_length=3)


def test_scored_ids_without_their_row_are_refused():
    with pytest.raises(ValueError, match=r"`labels` must have.*\(3,\)"):
        score_targets(ToyModel(), SOURCES, SOURCES, SOURCES[0])


class Owner(SearchOptionAttributes):
    def __init__(self):
        self.options = SearchOptions(num_beams=2)


def test_an_attribute_is_the_option():
    owner = Owner()
    assert owner.num_beams == 2
    owner.num_beams = 3
    assert owner.options == SearchOptions(num_beams=3)
    with pytest.raises(ValueError, match="`num_beams` must be"):
        owner.num_beams = 0
    with pytest.raises(AttributeError, match="num_beems"):
        owner.num_beems  # noqa: B018


def test_what_a_file_lacks_has_its_default():
    options = SearchOptions.from_mapping({"num_beams": 7, "format": 1})
    assert options == SearchOptions(num_beams=7)
    assert SearchOptions.from_mapping(options.as_dict()) == options


def test_a_whole_float_is_an_integer():
    options = SearchOptions(num_beams=4.0, sampling_seed=np.int64(7))
    assert type(options.num_beams) is type(options.sampling_seed) is int
    found = beam_search(ToyModel(), SOURCES, max_length=3, num_beams=4.0)
    assert found["ids"].shape == (1, 4, 3)


def test_groups_must_have_equally_many_beams():
    said = "`num_groups` must divide `num_beams`.*num_groups=3, num_beams=4"
    with pytest.raises(UserError, match=said):
        SearchOptions(num_beams=4, num_groups=3)
    options = SearchOptions(num_beams=6, num_groups=3)
    with pytest.raises(UserError, match="Take 6 beams"):
        options.updated(num_beams=4)
    changes = {"decoding.num_beams": 4, "decoding.num_groups": 3}
    with pytest.raises(UserError, match=f"`decoding.num_groups`: {said}"):
        load_recipe("transformer_tiny.multi30k_en_de", changes)
    # These searches have no groups.
    assert options.updated(num_beams=1).num_groups == 3
    assert options.updated(num_beams=4, sampling=True).num_groups == 3


def test_more_hypotheses_fill_the_groups():
    options = SearchOptions(num_beams=4, num_groups=2)
    beams = [options.for_hypotheses(n).num_beams for n in (1, 4, 5, 6, 7)]
    assert beams == [4, 4, 6, 6, 8]
    sampled = options.updated(sampling=True)
    assert sampled.for_hypotheses(5).num_beams == 5
    greedy = SearchOptions(num_beams=1, num_groups=3)
    assert greedy.for_hypotheses(1) == greedy
    assert greedy.for_hypotheses(2).num_beams == 3

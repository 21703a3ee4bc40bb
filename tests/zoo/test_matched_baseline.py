"""What must be true of matched_dimensions: the count is that of a model that
was built, of no width are the parameters nearer, and the paper's sizes are
found."""

import pytest

from keras_deepnmt.models import Transformer
from keras_deepnmt.zoo import matched_dimensions
from keras_deepnmt.zoo.matched_baseline import count_parameters

SMALL = dict(
    hidden_dim=256,
    intermediate_dim=512,
    num_heads=4,
    num_encoder_layers=3,
    num_decoder_layers=3,
)


@pytest.mark.parametrize(
    "sizes, options",
    [
        ((11, 13), {}),
        ((13, 13), {"share_embeddings": True}),
        ((11, 13), {"tie_output_embedding": False, "key_bias": True}),
        ((11, 13), {"normalize_first": True}),
    ],
)
def test_counts_what_a_model_has(sizes, options):
    dimensions = dict(
        hidden_dim=6,
        intermediate_dim=10,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=1,
    )
    model = Transformer(*sizes, **dimensions, **options)
    counted = count_parameters(*sizes, **dimensions, **options)
    assert counted == model.count_params()


def test_counts_the_body_of_the_paper_s_small_model():
    assert count_parameters(0, 0, **SMALL, key_bias=True) == 3_953_664


@pytest.mark.parametrize("num_roles, width", [(16, 296), (32, 332)])
def test_finds_the_widths_that_match_role_interaction(num_roles, width):
    plain = count_parameters(10_000, 10_000, **SMALL)
    wanted = plain + 2 * num_roles * 256**2
    found = matched_dimensions(wanted, 10_000, 10_000, **SMALL)
    assert found == {"hidden_dim": width, "intermediate_dim": 2 * width}


@pytest.mark.parametrize("wanted", [1, 40_000, 60_000, 10**7])
def test_no_other_width_is_nearer(wanted):
    dimensions = {**SMALL, "hidden_dim": 24, "intermediate_dim": 36}
    found = matched_dimensions(wanted, 50, 60, **dimensions)
    assert found["hidden_dim"] % 4 == 0
    assert found["intermediate_dim"] == found["hidden_dim"] * 3 / 2

    def distance(width):
        sizes = {"hidden_dim": width, "intermediate_dim": width * 3 // 2}
        counted = count_parameters(50, 60, **{**dimensions, **sizes})
        return abs(counted - wanted)

    widths = range(4, 1_000, 4)
    assert distance(found["hidden_dim"]) == min(map(distance, widths))


def test_its_own_parameters_give_the_model_back():
    wanted = count_parameters(50, 60, **SMALL)
    assert matched_dimensions(wanted, 50, 60, **SMALL) == {
        "hidden_dim": 256,
        "intermediate_dim": 512,
    }


def test_refuses_no_parameters():
    with pytest.raises(ValueError, match="num_parameters=0"):
        matched_dimensions(0, 50, 60, **SMALL)

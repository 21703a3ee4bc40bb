"""What must be true of the widths of dense stacks: they are the paper's, of
every model, exactly; a stack that is really run has them; the states that it
ends with add up to its output; and a summary lets nothing older through."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import GatedConvolution, SummaryLayer
from keras_deepnmt.models.dense_widths import (
    is_summary,
    slice_widths,
    stack_widths,
)

FOUR = {"hidden_dims": [256] * 4, "growths": [128] * 4}
EIGHT = {
    "hidden_dims": [192] * 8,
    "growths": [96] * 8,
    "summary_interval": 6,
}
FIFTEEN = {
    "hidden_dims": [512] * 10 + [1024] * 3 + [2048] * 2,
    "growths": [128] * 10 + [256] * 3 + [512] * 2,
    "summary_interval": 6,
}
B, T, N, A = 3, 5, 6, 2
SMALL = {
    "hidden_dims": [N] * 5 + [11] * 3,
    "growths": [A] * 5 + [3] * 3,
    "summary_interval": 3,
}


def test_the_encoder_s_widths_are_the_paper_s():
    assert stack_widths(**FOUR) == ([256, 384, 512, 640], 768)
    assert stack_widths(**EIGHT) == (
        [192, 288, 384, 480, 576, 672, 192, 288],
        384,
    )
    widths, output_width = stack_widths(**FIFTEEN)
    assert widths[:6] == [512, 640, 768, 896, 1024, 1152]
    assert widths[6:12] == [512, 640, 768, 896, 1024, 1280]
    assert widths[12:] == [1024, 1280, 1792]
    assert output_width == 2304


def test_the_decoder_s_widths_are_the_paper_s():
    found = stack_widths(**FOUR, num_outputs=2)
    assert found == ([256, 512, 768, 1024], 1280)
    found = stack_widths(**EIGHT, num_outputs=2)
    assert found == ([192, 384, 576, 768, 960, 1152, 192, 384], 576)


def test_the_slices_are_the_paper_s():
    assert slice_widths(**FOUR) == [128] * 4 + [256]
    assert slice_widths(**EIGHT) == [96, 96, 192]
    assert slice_widths(**FIFTEEN) == [512, 512, 256, 1024]


@pytest.mark.parametrize("options", [FOUR, EIGHT, FIFTEEN, SMALL])
def test_the_slices_add_up_to_the_output(options):
    assert sum(slice_widths(**options)) == stack_widths(**options)[1]


def test_a_stack_that_ends_with_a_summary_has_one_slice():
    assert slice_widths([7] * 6, [2] * 6, 3) == [7]
    assert stack_widths([7] * 6, [2] * 6, 3) == ([7, 9, 11] * 2, 7)
    # Every layer a summary: none is dense.
    assert stack_widths([7, 5], [2, 2], 1) == ([7, 7], 5)


def make_stack(options):
    """The layers of a dense encoder."""
    stack = []
    for number, (hidden_dim, growth) in enumerate(
        zip(options["hidden_dims"], options["growths"], strict=True), 1
    ):
        if is_summary(number, options["summary_interval"]):
            pair = GatedConvolution(hidden_dim), SummaryLayer(hidden_dim)
        else:
            pair = GatedConvolution(growth), None
        stack.append(pair)
    return stack


def run_stack(stack, x):
    """The widths that layers read, and the stack's states, newest first."""
    widths, states = [], [x]
    for convolution, summary in stack:
        everything = keras.ops.concatenate(states, axis=-1)
        widths.append(everything.shape[-1])
        new = convolution(everything)
        if summary is None:
            states = [new, *states]
        else:
            states = [summary(everything, [new])]
    return widths, states


def test_a_stack_that_is_run_has_these_widths():
    x = np.random.default_rng(0).normal(size=(B, T, N)).astype("float32")
    widths, states = run_stack(make_stack(SMALL), x)
    expected, output_width = stack_widths(**SMALL)
    assert widths == expected == [6, 8, 10, 6, 8, 10, 11, 14]
    slices = [state.shape[-1] for state in states]
    assert slices == slice_widths(**SMALL) == [3, 3, 11]
    assert sum(slices) == output_width


def test_a_summary_lets_nothing_older_through():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, B, T, N)).astype("float32")
    stack = make_stack(SMALL)
    before = [run_stack(stack, x)[1] for x in (one, other)]
    convolution, summary = stack[5]
    for layer in (convolution.convolution, summary.projection):
        layer.gain.assign(np.zeros(layer.gain.shape))
    after = [run_stack(stack, x)[1] for x in (one, other)]
    for number in range(3):
        assert not np.allclose(before[0][number], before[1][number])
        np.testing.assert_array_equal(after[0][number], after[1][number])


def test_without_an_interval_no_layer_is_a_summary():
    assert not any(is_summary(number) for number in range(1, 20))
    assert [n for n in range(1, 16) if is_summary(n, 6)] == [6, 12]


@pytest.mark.parametrize("function", [stack_widths, slice_widths])
def test_refuses_lists_that_do_not_fit(function):
    with pytest.raises(ValueError, match=r"each layer.*growths=\[2\]"):
        function([7, 7], [2])
    with pytest.raises(ValueError, match=r"each layer.*hidden_dims=\[\]"):
        function([], [])
    with pytest.raises(ValueError, match="at least 1.*summary_interval=0"):
        function([7], [2], 0)


def test_refuses_a_layer_without_outputs():
    with pytest.raises(ValueError, match="num_outputs=0"):
        stack_widths([7], [2], num_outputs=0)

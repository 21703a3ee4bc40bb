"""`--num-groups` goes with the beams of the command line or of the run."""

import pytest
from jsonargparse import Namespace

from keras_deepnmt import UserError
from keras_deepnmt.commands.options.decoding import given_search_options


def test_groups_alone_are_for_the_beams_of_the_run():
    # The run may have 6 beams, which only the run's folder tells.
    assert given_search_options(Namespace(num_groups=3)) == {"num_groups": 3}


def test_groups_that_do_not_divide_the_beams_are_refused():
    said = "`--num-groups` must divide `--num-beams`.*Received: 3, 4"
    with pytest.raises(UserError, match=said):
        given_search_options(Namespace(num_beams=4, num_groups=3))

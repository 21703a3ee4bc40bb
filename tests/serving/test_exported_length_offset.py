"""What must be true of the offset in an export's length penalty.

* an export scores and ranks with the translator's offset
* it is a constant of the export: requests are the same as before
"""

import numpy as np
import pytest
from tiny_translator import all_pairs

from keras_deepnmt.serving import exporting
from keras_deepnmt.serving.clients import SavedModelClient
from keras_deepnmt.translator import Translator

# By default `test_exported_signatures.py` compares the scores of a graph with
# this offset with a translator's.
pytestmark = pytest.mark.thorough

SOURCES = [source for source, _ in all_pairs()][:5]


@pytest.fixture(scope="module")
def plain(translator):
    """The translator that ranks by the mean log-probability."""
    return Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        num_beams=3,
        length_penalty=1.0,
        length_offset=0.0,
        compiled=False,
    )


@pytest.fixture(scope="module")
def client(plain, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # What other tests check of every export.
        patch.setattr(exporting, "check_ops", lambda folder: None)
        patch.setattr(exporting, "_run_golden", lambda *rest: [])
        patch.setattr(exporting, "verify", lambda folder: None)
        folder = exporting.export(plain, tmp_path_factory.mktemp("plain"))
    return SavedModelClient(folder)


def test_an_export_ranks_and_scores_as_the_translator_does(client, plain):
    expected = plain.translate_nbest(SOURCES, 3)
    for hypothesis in expected[0]:
        mean = hypothesis.log_prob / len(hypothesis.ids)
        assert hypothesis.score == pytest.approx(mean, rel=1e-5)
    found = client.translate_nbest(SOURCES)
    assert [[h.text for h in row] for row in found] == [
        [h.text for h in row] for row in expected
    ]
    scores = [[h.score for h in row] for row in expected]
    np.testing.assert_allclose(
        [[h.score for h in row] for row in found], scores, 1e-5, 1e-5
    )
    best = client.predict("serving_default", {"text": SOURCES})
    np.testing.assert_allclose(
        best["score"], [row[0] for row in scores], 1e-5, 1e-5
    )


def test_the_offset_is_a_constant_of_the_export(client):
    nbest = client._loaded.signatures["translate_nbest"]
    assert set(nbest.structured_input_signature[1]) == {
        "text",
        "num_hypotheses",
        "length_penalty",
    }
    assert client.description["length_offset"] == 0.0
    # With another penalty too, sums are divided by a power of the length.
    lengths = [
        (hypothesis.log_prob / hypothesis.score) ** 0.5
        for row in client.translate_nbest(SOURCES, length_penalty=2.0)
        for hypothesis in row
    ]
    np.testing.assert_allclose(lengths, np.round(lengths), 1e-4)
    assert min(lengths) > 1.5

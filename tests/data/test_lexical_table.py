"""What must be true of word translations learned by IBM Model 1.

* one iteration is that of the equations, written with loops
* the words of a language whose sentences are translated word by word are found
"""

import collections

import numpy as np
import pytest

from keras_deepnmt.data import learn_lexical_table
from keras_deepnmt.data.lexical_table import EMPTY_ID


def model_1(pairs, iterations):
    """Brown et al. (1993), with a dict for each table."""
    cooccurring = collections.defaultdict(set)
    for source, target in pairs:
        for s in [EMPTY_ID, *source]:
            cooccurring[s] |= set(target)
    t = {
        (s, f): 1 / len(words)
        for s, words in cooccurring.items()
        for f in words
    }
    for _ in range(iterations):
        counts = collections.Counter()
        for source, target in pairs:
            for f in target:
                total = sum(t[s, f] for s in [EMPTY_ID, *source])
                for s in [EMPTY_ID, *source]:
                    counts[s, f] += t[s, f] / total
        sums = collections.Counter()
        for (s, _), count in counts.items():
            sums[s] += count
        t = {(s, f): count / sums[s] for (s, f), count in counts.items()}
    return t


@pytest.mark.parametrize("iterations", [1, 4])
def test_it_is_the_model_of_the_paper(iterations):
    generator = np.random.default_rng(0)
    pairs = [
        (
            generator.integers(4, 12, generator.integers(1, 6)).tolist(),
            generator.integers(4, 12, generator.integers(1, 6)).tolist(),
        )
        for _ in range(20)
    ]
    table = learn_lexical_table(pairs, iterations)
    found = {
        (int(s), int(f)): p
        for s, f, p in zip(
            table.source_ids, table.target_ids, table.probabilities, strict=True
        )
    }
    assert found == pytest.approx(model_1(pairs, iterations))


def test_words_that_are_translated_one_by_one_are_found():
    generator = np.random.default_rng(1)
    lexicon = dict(enumerate(generator.permutation(np.arange(100, 130))))
    pairs = []
    for _ in range(300):
        source = generator.integers(0, 30, 8)
        target = [lexicon[word] for word in generator.permutation(source)]
        pairs.append((source, target))
    table = learn_lexical_table(pairs)
    assert dict(table.best_targets()) == lexicon
    np.testing.assert_allclose(
        np.bincount(table.source_ids + 1, table.probabilities), 1
    )
    # Each target word is accounted for once.
    assert table.counts.sum() == pytest.approx(300 * 8)
    assert table.best_targets(min_count=1e9) == []


def test_text_without_words_is_refused():
    with pytest.raises(ValueError, match="must have a target word"):
        learn_lexical_table([([4, 5], [])])

"""What must be true of the gold standard of word alignments."""

import itertools

from keras_deepnmt.data.demo import demo_alignments, demo_pairs
from keras_deepnmt.evaluation import alignment_error_rate, parse_alignment


def test_its_pairs_are_of_the_test_split():
    # 500 validation pairs are generated first.
    test = {(p.source, p.target) for p in demo_pairs(600)[500:]}
    gold = [(pair.source, pair.target) for pair in demo_alignments()]
    assert len(set(gold)) == 12
    assert set(gold) <= test


def test_every_word_has_a_link_and_every_link_two_words():
    for pair in demo_alignments():
        sure, possible = parse_alignment(pair.alignment)
        assert not sure & possible
        for side, text in enumerate((pair.source, pair.target)):
            linked = {link[side] for link in sure | possible}
            assert linked == set(range(len(text.split()))), pair
        # A word without a sure link is a possible part of a linked word.
        assert len(sure) > 2 * len(possible), pair


def test_names_and_small_words_are_linked_with_their_translations():
    translations = {"und": "and", "Hamburg": "Hamburg", "ich": "I"}
    translations |= {"ein": "a", "weil": "because", "nicht": "not"}
    found = set()
    for pair in demo_alignments():
        source, target = pair.source.split(), pair.target.split()
        for s, t in parse_alignment(pair.alignment)[0]:
            if source[s] in translations:
                assert target[t] == translations[source[s]]
                found.add(source[s])
    assert found == set(translations)


def test_itself_has_no_error():
    sure, possible = zip(
        *(parse_alignment(pair.alignment) for pair in demo_alignments()),
        strict=True,
    )
    assert alignment_error_rate(sure, sure, possible) == 0
    both = [a | b for a, b in zip(sure, possible, strict=True)]
    assert alignment_error_rate(both, sure, possible) == 0
    every = [set(itertools.product(range(9), range(9)))] * len(sure)
    assert alignment_error_rate(every, sure, possible) > 0.5

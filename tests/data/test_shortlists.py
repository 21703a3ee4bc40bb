"""What must be true of shortlists.

* the true translation of a word is the first in its list
* they are the lexical table, sorted with loops, and the counted tokens
* the special ids are always there; ids outside a vocabulary are refused
* no more word links are used than allowed, and those of the first pairs
* a file is read back as it was written, with equal bytes; others are refused
"""

import collections
import zipfile

import numpy as np
import pytest

from keras_deepnmt.data import Shortlists, learn_lexical_table
from keras_deepnmt.errors import UserError
from keras_deepnmt.limits import Limits, used_limits

SIZES = 15, 17


def random_pairs(seed, number=30):
    generator = np.random.default_rng(seed)
    return [
        tuple(
            generator.integers(4, size, generator.integers(1, 7)).tolist()
            for size in SIZES
        )
        for _ in range(number)
    ]


def best_by_loops(pairs, num_targets):
    table = learn_lexical_table(pairs)
    targets = collections.defaultdict(list)
    for s, t, p in zip(
        table.source_ids, table.target_ids, table.probabilities, strict=True
    ):
        targets[int(s)].append((-p, int(t)))
    rows = [
        [t for _, t in sorted(targets[s])][:num_targets]
        for s in range(SIZES[0])
    ]
    return [row + [0] * (num_targets - len(row)) for row in rows]


def frequent_by_loops(pairs, num_frequent):
    counts = collections.Counter(t for _, target in pairs for t in target)
    order = sorted(counts, key=lambda t: (-counts[t], t))
    return order[:num_frequent]


def test_the_true_translation_of_each_word_is_the_first():
    generator = np.random.default_rng(1)
    lexicon = generator.permutation(np.arange(10, 40))
    pairs = []
    for _ in range(300):
        source = generator.integers(4, 34, 8)
        target = lexicon[generator.permutation(source) - 4]
        pairs.append((source.tolist(), target.tolist()))
    shortlists = Shortlists.learn(iter(pairs), 34, 40, num_targets=5)
    np.testing.assert_array_equal(shortlists.by_source[4:, 0], lexicon)
    assert not shortlists.by_source[:4].any()
    few = Shortlists.learn(pairs, 34, 40, num_targets=1, num_frequent=0)
    expected = [0, 1, 2, 3, *sorted(lexicon[[0, 3, 9]])]
    assert few.candidates([[4, 7, 3], [13, 4, 3]]).tolist() == expected


@pytest.mark.parametrize("num_targets", [1, 3, 13])
@pytest.mark.parametrize("seed", [0, 1])
def test_they_are_the_sorted_lexical_table(seed, num_targets):
    pairs = random_pairs(seed)
    shortlists = Shortlists.learn(
        pairs, *SIZES, num_targets=num_targets, num_frequent=4
    )
    assert shortlists.by_source.dtype == shortlists.frequent.dtype == "int32"
    assert shortlists.by_source.tolist() == best_by_loops(pairs, num_targets)
    assert shortlists.frequent.tolist() == frequent_by_loops(pairs, 4)
    assert shortlists.target_vocabulary_size == SIZES[1]


def test_targets_of_equal_probability_are_sorted_by_id():
    shortlists = Shortlists.learn([([4], [9, 5, 7])], 5, 10, num_targets=9)
    assert shortlists.by_source[4].tolist() == [5, 7, 9, 0, 0, 0, 0, 0, 0]
    assert shortlists.frequent.tolist() == [5, 7, 9]


def test_there_are_at_most_as_many_targets_as_ids():
    shortlists = Shortlists.learn([([4], [5])], 5, 6, num_targets=1000)
    assert shortlists.by_source.shape == (5, 6)


@pytest.mark.parametrize("rows", [[], [[]], [[3]], [[4, 5, 3], [14, 0, 1]]])
def test_candidates_are_the_union_with_the_special_ids(rows):
    shortlists = Shortlists.learn(
        random_pairs(2), *SIZES, num_targets=2, num_frequent=3
    )
    expected = {0, 1, 2, 3, *shortlists.frequent.tolist()}
    for row in rows:
        for source in row:
            expected |= set(shortlists.by_source[source].tolist())
    found = shortlists.candidates(rows)
    assert found.dtype == "int32"
    assert found.tolist() == sorted(expected)
    assert found.tolist() == shortlists.candidates(iter(rows)).tolist()


@pytest.mark.parametrize("source", [-1, 15])
def test_sources_outside_the_vocabulary_are_refused(source):
    shortlists = Shortlists.learn(random_pairs(2), *SIZES)
    with pytest.raises(ValueError, match="from 0 to 14. Received: "):
        shortlists.candidates([[4, source]])


def test_no_more_links_are_used_than_allowed():
    pairs = random_pairs(3)
    sums = np.cumsum([(len(s) + 1) * len(t) for s, t in pairs])
    for links, number in ((sums[7], 8), (sums[7] - 1, 7), (sums[-1], 30)):
        shortlists = Shortlists.learn(
            iter(pairs), *SIZES, num_targets=3, max_links=int(links)
        )
        expected = best_by_loops(pairs[:number], 3)
        assert shortlists.by_source.tolist() == expected
        # Counted in all pairs.
        assert shortlists.frequent.tolist() == frequent_by_loops(pairs, 99)


def test_a_pair_with_too_many_links_is_left_out():
    pairs = [([4] * 9, [5] * 9), ([6], [7])]
    shortlists = Shortlists.learn(pairs, 8, 8, num_targets=1, max_links=89)
    assert shortlists.by_source[4:].tolist() == [[0], [0], [7], [0]]
    with pytest.raises(ValueError, match="max_links=1 and no such pair"):
        Shortlists.learn(pairs, 8, 8, max_links=1)
    with pytest.raises(ValueError, match="a target word|a target token"):
        Shortlists.learn([], 8, 8)


@pytest.mark.parametrize(
    "pairs, options, message",
    [
        ([([15], [4])], {}, "`source` must be from 0 to 14"),
        ([([4], [17])], {}, "`target` must be from 0 to 16"),
        ([([4], [-1])], {}, "`target` must be from 0 to 16"),
        ([([4], [4])], {"num_targets": 0}, "`num_targets` must be at least 1"),
        ([([4], [4])], {"num_frequent": -1}, "`num_frequent` must be"),
        ([([4], [4])], {"max_links": 0}, "`max_links` must be at least 1"),
    ],
)
def test_mistakes_are_named(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        Shortlists.learn(pairs, *SIZES, **options)


def test_other_arrays_are_refused():
    ids = np.array([4, 5], "int32")
    with pytest.raises(ValueError, match="`by_source` must be an int32 array"):
        Shortlists(ids, ids, 6)
    with pytest.raises(ValueError, match="`frequent` must be an int32 array"):
        Shortlists(ids[None], ids.astype("int64"), 6)
    with pytest.raises(ValueError, match="`by_source` must be from 0 to 4"):
        Shortlists(ids[None], ids[:1], 5)
    with pytest.raises(ValueError, match="the 4 special ids"):
        Shortlists(ids[None, :0], ids[:0], 3)


@pytest.fixture
def file(tmp_path):
    shortlists = Shortlists.learn(random_pairs(4), *SIZES, num_targets=3)
    shortlists.save(tmp_path / "shortlist.npz")
    return tmp_path / "shortlist.npz"


def test_a_file_is_read_back_as_it_was_written(file, tmp_path):
    expected = Shortlists.learn(random_pairs(4), *SIZES, num_targets=3)
    found = Shortlists.load(file)
    np.testing.assert_array_equal(found.by_source, expected.by_source)
    np.testing.assert_array_equal(found.frequent, expected.frequent)
    assert found.by_source.dtype == found.frequent.dtype == "int32"
    assert found.target_vocabulary_size == SIZES[1]
    found.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {
        "again.npz",
        "shortlist.npz",
    }


def test_the_bytes_do_not_depend_on_the_time(file):
    with zipfile.ZipFile(file) as members:
        dates = {member.date_time for member in members.infolist()}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


def refused(file, message):
    with pytest.raises(UserError, match=message) as caught:
        Shortlists.load(file)
    assert str(file) in str(caught.value)
    assert "--shortlist-targets" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_a_cut_file_is_refused(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    refused(file, "damaged")


def test_a_changed_file_is_refused(file):
    content = bytearray(file.read_bytes())
    content[content.index(Shortlists.load(file).by_source[4:].tobytes())] ^= 1
    file.write_bytes(content)
    refused(file, "damaged")


def test_a_missing_file_and_other_files_are_refused(file):
    refused(file.with_name("none.npz"), "No such file")
    with open(file, "wb") as stream:
        np.save(stream, np.zeros(3))
    refused(file, "damaged, or no shortlists")
    np.savez(file, weights=np.zeros(3))
    refused(file, "damaged, or no shortlists")
    file.write_text("no arrays")
    refused(file, "damaged, or no shortlists")


def test_a_file_that_unpacks_to_too_much_is_refused(file):
    with np.load(file) as arrays:
        arrays = dict(arrays)
    np.savez_compressed(file, **arrays, more=np.zeros(300_000))
    with (
        used_limits(Limits(max_unpacked_gb=0.002)),
        pytest.raises(UserError, match=f"{file}: must unpack to at most 0.002"),
    ):
        Shortlists.load(file)
    assert Shortlists.load(file).frequent.size == arrays["frequent"].size


def test_another_version_is_refused(file):
    with np.load(file) as arrays:
        arrays = dict(arrays)
    np.savez(file, **arrays | {"format": 2})
    refused(file, "format must be 1. Received: 2")
    arrays["frequent"] = arrays["frequent"] + 20
    np.savez(file, **arrays)
    refused(file, "`frequent` must be from 0 to 16")

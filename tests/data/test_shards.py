"""What must be true of ShardWriter and PairStore.

* Pairs are read as they were written, in any order and across shards.
* Ids beyond 65,535 survive.
* The index counts one special id a side.
* A killed or failed writer leaves nothing that opens.
* A split may have more shards than a process may have open files, for threads
  and in other processes; without any file left, the message says so.
* Damage, ids outside the vocabulary and sides too long are refused by name.
"""

import os
import pickle
import signal

import numpy as np
import pytest
from forked_processes import run_forked

from keras_deepnmt.data.pair_store import (
    _OPEN_SHARDS,
    PairStore,
    shard_files,
)
from keras_deepnmt.data.preparation.shard_writer import (
    MAX_PAIR_LENGTH,
    ShardWriter,
)
from keras_deepnmt.errors import UserError

PAIRS = [
    (np.arange(4, 4 + n % 5), np.arange(10 * n, 10 * n + n % 7 + 1))
    for n in range(11)
]


def write(directory, pairs=PAIRS, split="train", records_per_shard=3):
    with ShardWriter(directory, split, records_per_shard) as writer:
        for source_ids, target_ids in pairs:
            writer.write(source_ids, target_ids)
    return writer.summary


def assert_same(pairs, expected):
    assert len(pairs) == len(expected)
    for pair, wanted in zip(pairs, expected, strict=True):
        for ids, wanted_ids in zip(pair, wanted, strict=True):
            assert ids.dtype == np.int32
            np.testing.assert_array_equal(ids, wanted_ids)


def test_reads_what_was_written_in_any_order(tmp_path):
    write(tmp_path)
    store = PairStore(tmp_path, "train")
    rows = [10, 0, 7, 7, 3, 2]
    assert_same(store.read(rows), [PAIRS[row] for row in rows])
    assert_same(store.read(np.arange(11)), PAIRS)
    assert store.read([]) == []
    assert len(store) == 11


def test_large_ids_survive_beside_small_ones(tmp_path):
    pairs = [([5], [70_000, 4]), ([65_535], [6]), ([2**31 - 1], [])]
    write(tmp_path, pairs)
    assert_same(PairStore(tmp_path, "train").read([0, 1, 2]), pairs)


def test_index_counts_the_special_id(tmp_path):
    write(tmp_path)
    lengths = PairStore(tmp_path, "train").lengths
    assert lengths.dtype == np.uint16
    wanted = [(len(source) + 1, len(target) + 1) for source, target in PAIRS]
    assert lengths.tolist() == [list(pair) for pair in wanted]


def test_summary_tells_what_lies_in_the_folder(tmp_path):
    summary = write(tmp_path)
    names = [f"train-0000{n}-of-00004.array_record" for n in range(4)]
    assert [shard["file"] for shard in summary["shards"]] == names
    assert [shard["records"] for shard in summary["shards"]] == [3, 3, 3, 2]
    assert summary["pairs"] == 11
    assert summary["source_tokens"] == sum(len(pair[0]) for pair in PAIRS)
    assert summary["target_tokens"] == sum(len(pair[1]) for pair in PAIRS)
    assert sorted(os.listdir(tmp_path)) == [*names, "train.lengths.npy"]
    assert len({shard["sha256"] for shard in summary["shards"]}) == 4


def test_store_survives_pickling(tmp_path):
    write(tmp_path)
    store = pickle.loads(pickle.dumps(PairStore(tmp_path, "train", 99, 200)))
    assert_same(store.read([4]), [PAIRS[4]])


def test_an_empty_split_is_a_split(tmp_path):
    assert write(tmp_path, [])["pairs"] == 0
    store = PairStore(tmp_path, "train")
    assert len(store) == 0 and store.read([]) == []


def test_a_second_run_replaces_the_first(tmp_path):
    write(tmp_path, records_per_shard=2)
    write(tmp_path, PAIRS[:5], records_per_shard=3)
    assert len(shard_files(tmp_path, "train")) == 2
    assert_same(PairStore(tmp_path, "train").read(range(5)), PAIRS[:5])


def test_an_error_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with ShardWriter(tmp_path, "train", 2) as writer:
            for source_ids, target_ids in PAIRS:
                writer.write(source_ids, target_ids)
            raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_a_killed_writer_leaves_nothing_that_opens(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from keras_deepnmt.data.preparation.shard_writer import ShardWriter\n"
        "writer = ShardWriter(sys.argv[1], 'train', 2)\n"
        "for _ in range(5):\n"
        "    writer.write([5, 6], [7])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = run_forked(["-c", code, tmp_path])
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path)  # it was under way
    assert shard_files(tmp_path, "train") == []
    with pytest.raises(UserError, match="no complete set of `train`"):
        PairStore(tmp_path, "train")
    write(tmp_path)  # and the next run clears up
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_refuses_a_missing_shard(tmp_path):
    write(tmp_path)
    shard_files(tmp_path, "train")[1].unlink()
    with pytest.raises(UserError, match="no complete set"):
        PairStore(tmp_path, "train")


def test_names_a_truncated_shard(tmp_path):
    write(tmp_path)
    file = shard_files(tmp_path, "train")[1]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UserError, match="train-00001-of-.*not a readable shar"):
        PairStore(tmp_path, "train")


def test_refuses_shards_that_hold_fewer_pairs_than_the_index(tmp_path):
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", PAIRS[:4])
    write(tmp_path)
    shard_files(tmp_path / "other", "train")[1].replace(
        shard_files(tmp_path, "train")[1]
    )
    with pytest.raises(UserError, match="lists 11 pairs, .* hold 9"):
        PairStore(tmp_path, "train")


def test_names_the_shard_with_a_flipped_bit(tmp_path):
    pairs = [(np.full(50, 4 + n), np.full(50, 4 + n)) for n in range(1000)]
    write(tmp_path, pairs, records_per_shard=1000)
    file = shard_files(tmp_path, "train")[0]
    content = bytearray(file.read_bytes())
    content[80_000] ^= 255
    file.write_bytes(content)
    with pytest.raises(UserError, match="train-00000-of-00001.*damaged"):
        PairStore(tmp_path, "train").read(range(1000))


def test_names_the_record_with_an_id_outside_the_vocabulary(tmp_path):
    write(tmp_path)
    store = PairStore(tmp_path, "train", 8, 70)
    store.read([0, 1, 2, 3, 5])
    with pytest.raises(
        UserError, match="train-00001-of.*record 1: source id 7"
    ):
        PairStore(tmp_path, "train", 7, 70).read([4])
    with pytest.raises(UserError, match="record 1: target id 70 is outside"):
        store.read([7])


def test_refuses_rows_outside_the_store(tmp_path):
    write(tmp_path)
    with pytest.raises(IndexError, match="0..10"):
        PairStore(tmp_path, "train").read([11])


def test_refuses_a_side_too_long_for_the_index(tmp_path):
    with ShardWriter(tmp_path, "train") as writer:
        writer.write(np.full(MAX_PAIR_LENGTH, 5), [6])
        with pytest.raises(UserError, match="at most 65534 ids"):
            writer.write([5], np.full(MAX_PAIR_LENGTH + 1, 5))
    lengths = PairStore(tmp_path, "train").lengths
    assert lengths.tolist() == [[65_535, 2]]


def test_refuses_negative_ids_and_shards_of_nothing(tmp_path):
    with ShardWriter(tmp_path, "train") as writer:
        with pytest.raises(ValueError, match="from 0 to"):
            writer.write([5, -1], [6])
    with pytest.raises(ValueError, match="records_per_shard=0"):
        ShardWriter(tmp_path, "train", 0)


def test_says_when_the_disk_is_full(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("This system has no /dev/full.")
    writer = ShardWriter(tmp_path, "train")
    (tmp_path / ".train-00000.unfinished").symlink_to("/dev/full")
    with pytest.raises(UserError, match="Free some disk space"):
        with writer:
            writer.write([5], [6])
    assert os.listdir(tmp_path) == []


LIMITED = """\
import os, pickle, resource, sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_deepnmt.data.open_shards import open_shard
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.errors import UserError

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
store = PairStore(sys.argv[1], "train")


def check(seed):
    rows = np.random.default_rng(seed).integers(0, len(store), 100)
    for row, (source, target) in zip(rows, store.read(rows), strict=True):
        assert source.tolist() == [row, 5] and target.tolist() == [row + 1]


with ThreadPoolExecutor(8) as pool:
    list(pool.map(check, range(32)))
store = pickle.loads(pickle.dumps(store))
check(99)
child = os.fork()
if child == 0:
    check(98)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(len(store), len(os.listdir("/proc/self/fd")))
try:
    while True:
        os.open(sys.argv[1], os.O_RDONLY)
except OSError:
    pass
check(97)  # when no file can be opened, open shards are closed for it
while True:
    try:
        os.open(sys.argv[1], os.O_RDONLY)
    except OSError:
        break
try:
    open_shard(store._files[0])
except UserError as error:
    print(error)
"""


@pytest.mark.thorough(each_commit=True)
def test_a_thousand_shards_are_read_under_a_limit_of_a_hundred_files(tmp_path):
    pairs = [([row, 5], [row + 1]) for row in range(1000)]
    write(tmp_path, pairs, records_per_shard=1)
    read = run_forked(["-c", LIMITED, tmp_path])
    assert read.returncode == 0, read.stderr
    counts, error = read.stdout.splitlines()
    length, open_files = map(int, counts.split())
    assert length == 1000 and open_files <= 100
    assert "Too many open files" in error and "`ulimit -n`" in error
    assert "deepnmt prepare" not in error


def test_a_store_that_is_gone_keeps_no_file_open(tmp_path):
    write(tmp_path)
    before = len(_OPEN_SHARDS)
    store = PairStore(tmp_path, "train")
    store.read(range(11))
    assert len(_OPEN_SHARDS) == before + 4
    del store
    assert len(_OPEN_SHARDS) == before

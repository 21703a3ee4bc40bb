"""Languages, keys and warm shapes of a server."""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.api_keys import read_api_keys
from keras_deepnmt.server.served_models import pair_of_languages


@pytest.mark.parametrize("text", ["de", "de-en-fr", "-", "de-", "d-e", "de en"])
def test_a_pair_of_languages_has_two_codes(text):
    with pytest.raises(UserError, match="pairs of codes"):
        pair_of_languages(text)


def test_keys_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "keys"
    file.write_text("# ours\n first \n\nsecond\n")
    monkeypatch.setenv("DEEPNMT_API_KEYS", "third")
    keys = read_api_keys(file)
    assert keys.accept("first") and keys.accept("second")
    assert not keys.accept("third") and not keys.accept("")
    assert read_api_keys(None).accept("third")
    monkeypatch.delenv("DEEPNMT_API_KEYS")
    assert read_api_keys(None).accept(None)


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path):
    file = tmp_path / "keys"
    file.write_bytes(b"\xef\xbb\xbffirst\r\nsecond\r\n")
    keys = read_api_keys(file)
    assert keys.accept("first") and keys.accept("second")


def test_keys_of_the_environment_are_ascii(monkeypatch):
    monkeypatch.setenv("DEEPNMT_API_KEYS", "one schl\u00fcssel")
    with pytest.raises(UserError, match="DEEPNMT_API_KEYS: .* in key 2"):
        read_api_keys(None)


@pytest.mark.parametrize(
    "content", ["", "# none\n", "a key\n", "schl\u00fcssel\n"]
)
def test_a_file_of_keys_has_one_in_each_line(content, tmp_path):
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="key"):
        read_api_keys(file)


@pytest.mark.parametrize("longest", [9, 64, 256])
@pytest.mark.parametrize("batch_size", [1, 5, 32])
def test_each_batch_is_padded_to_a_warm_shape(batch_size, longest):
    from keras_deepnmt.decoding.few_shapes import FewShapes
    from keras_deepnmt.server.warm_up_shapes import warm_up_shapes
    from keras_deepnmt.translator.batches import padded_length, padded_rows
    from keras_deepnmt.xla import tuned

    few = FewShapes()
    shapes = warm_up_shapes(batch_size, longest, tuned.MOST_PROGRAMS)
    assert len(set(shapes)) == len(shapes)
    for shape in shapes:
        assert few.use(shape, "search")
    for rows in range(1, batch_size + 1):
        for largest in {batch_size, -(-batch_size // 2)}:
            for length in range(2, longest + 1, 7):
                if rows > largest:
                    continue
                own = (padded_rows(rows, largest), padded_length(length))
                padded = few.choose(own, "search")
                assert few.use(padded, "search"), (own, shapes)

"""`prepare` leaves out the pairs that a filter of the user leaves out."""

import pytest
from own_code_process import new_process

from keras_deepnmt import UserError, cli, import_code
from keras_deepnmt.data import CorpusOptions, PreparedData, PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus

FILE = """\
def no_address(source, target):
    return "www" not in source


class Shorter:
    def __init__(self, most):
        self.most = most

    def __call__(self, source, target):
        return len(target) <= self.most


class NoCall:
    pass
"""
SOURCE = ["a b c", "www a", "b c a", "c a b", "www b c"]
TARGET = ["A B C", "www A", "B C A A A A", "C A B", "www B C"]
VALUES = ["no_address", {"my_filters.Shorter": {"most": 6}}]


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "my_filters.py").write_text(FILE)
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        text = "".join(f"{line}\n" for line in lines * 4)
        (tmp_path / name).write_text(text)
    with new_process(tmp_path / "home", tmp_path):
        yield tmp_path


def prepare(filters=VALUES, **options):
    prepare_options = PrepareOptions(
        [CorpusOptions("source", "target")],
        vocabulary_size=14,
        drop_duplicates=False,
        drop_identical=False,
        filters=filters,
    )
    return prepare_corpus(prepare_options, "data", progress=False, **options)


def test_the_pairs_are_left_out_and_counted_by_name(folder):
    import_code("my_filters.py")
    manifest = prepare(rejected_file="rejected.tsv")
    counts = manifest["filters"]["train"]
    assert counts["no_address"] == 8 and counts["Shorter"] == 4
    assert counts["kept"] == 8 == manifest["splits"]["train"]["pairs"]
    lines = (folder / "rejected.tsv").read_text().splitlines()[1:]
    assert {tuple(line.split("\t")[3:5]) for line in lines} == {
        ("no_address", "www a"),
        ("no_address", "www b c"),
        ("Shorter", "b c a"),
    }


def test_a_folder_whose_filter_has_changed_is_refused(folder):
    import_code("my_filters.py")
    first = prepare()
    assert prepare() == first
    (folder / "my_filters.py").write_text(FILE.replace("<=", "<"))
    import_code("my_filters.py")
    with pytest.raises(UserError, match="the code of a filter was changed"):
        prepare()
    assert prepare(overwrite=True)["filter_code"] != first["filter_code"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_adress", "no imported file has 'no_adress'.*--import"),
        ({"Shorter": {"mots": 3}}, "`mots` is not .* Did you mean `most`"),
        ({"no_address": {"most": 3}}, "no_address: got an unexpected keyword"),
        ("NoCall", "NoCall must be a function of a source and a target"),
        ("my_filters.length", "names of their own. Received: length"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_read(value, message, folder):
    import_code("my_filters.py")
    (folder / "source").unlink()
    with pytest.raises(UserError, match=message):
        prepare([value])


def test_the_command_line_has_them_too(folder, capsys):
    words = ["prepare", "--source", "source", "--target", "target"]
    words += ["--output", "data", "--vocabulary-size", "14", "--quiet"]
    words += ["--drop-identical", "false", "--import", "my_filters.py"]
    assert cli.main([*words, "--filters", "no_address"]) == 0
    counts = PreparedData("data").manifest["filters"]["train"]
    assert (counts["no_address"], counts["kept"]) == (2, 3)
    text = FILE.replace('"www" not in source', "source.nothing")
    (folder / "my_filters.py").write_text(text)
    capsys.readouterr()
    assert cli.main([*words, "--filters", "no_address", "--overwrite"]) == 2
    assert capsys.readouterr().err == (
        "deepnmt prepare: error: my_filters.py, line 2, in no_address: "
        "AttributeError: 'str' object has no attribute 'nothing'\n"
    )

"""Every tuned constant is used, and from one place."""

from pathlib import Path

from keras_deepnmt.xla import tuned

FILE = Path(tuned.__file__)
NAMES = [name for name in vars(tuned) if name.isupper()]


def test_every_constant_is_read_by_its_full_name():
    files = FILE.parents[1].rglob("*.py")
    texts = [file.read_text(encoding="utf-8") for file in files]
    unused = [
        name
        for name in NAMES
        if not any(f"tuned.{name}" in text for text in texts)
    ]
    assert NAMES and not unused


def test_every_constant_has_a_comment():
    lines = FILE.read_text(encoding="utf-8").splitlines()
    for name in NAMES:
        place = next(
            n for n, line in enumerate(lines) if line.startswith(f"{name} =")
        )
        # Two that were measured together have one comment.
        above = [line for line in lines[place - 2 : place] if line]
        assert any(line.startswith("#") for line in above), name

"""Files of digits to translate, for the tests of `translate-files`."""

import gzip
import random

OPTIONS = ["--no-compile", "--num-beams", "1", "--block-lines", "16"]


def write_shards(folder):
    """Writes `mono/`: a compressed file, an empty one, and one with faults.

    Returns the lines of each file by its name.
    """
    draw = random.Random(0)
    lines = {
        name: [
            " ".join(str(draw.randrange(10)) for _ in range(draw.randint(3, 8)))
            for _ in range(number)
        ]
        for name, number in {"a.gz": 70, "b": 40, "c": 0, "d.gz": 33}.items()
    }
    (folder / "mono").mkdir()
    for name, texts in lines.items():
        content = "".join(f"{text}\n" for text in texts).encode()
        if name == "b":
            rows = content.split(b"\n")
            rows[3], rows[5], rows[7] = b"1 \xfc 2", b"", b"3\t1 2 4"
            content = b"\n".join(rows[:-1])  # without the last line end
        if name.endswith(".gz"):
            content = gzip.compress(content)
        (folder / "mono" / name).write_bytes(content)
    return lines


def read_lines(file):
    """The lines of a file, which may be compressed."""
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    assert not content or content.endswith(b"\n")
    return content.decode().split("\n")[:-1]


def contents(folder):
    """The unpacked content of all results of a folder, by name."""
    return {
        file.name: read_lines(file)
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != "translate-files.json"
    }

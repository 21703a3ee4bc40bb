"""Known corpora whose files are downloaded as they are, one for each side."""

from keras_deepnmt.data.known_corpora.sources import (
    DemoFile,
    NamedCorpus,
    NamedFile,
)

_MULTI30K = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
)
_NEWSTEST = (
    "https://raw.githubusercontent.com/Helsinki-NLP/OPUS-MT-testsets/"
    "ac0f19c0be3cb4e0d9450fcb2d7a9847c4bdd180/testsets/eng-deu"
)


def _multi30k(name: str, raw: bool, sha256: dict[str, tuple[str, str]]):
    addresses = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    splits = {}
    for split, hashes in sha256.items():
        local = split if split != "test" else "test_2016_flickr"
        files = []
        for language, digest in zip(("en", "de"), hashes, strict=True):
            if raw:
                address = f"raw/{addresses[split]}.{language}.gz"
                local_names = (f"multi30k/{local}.{language}",)
            else:
                address = f"tok/{addresses[split]}.lc.norm.tok.{language}"
                local_names = (f"multi30k/tok/{local}.{language}",)
            local_names += (f"multi30k/{address}",)
            files.append(
                NamedFile(f"{_MULTI30K}/{address}", digest, local_names)
            )
        splits[split] = tuple(files)
    text = "raw" if raw else "lower-cased and tokenized"
    notes = f"Image captions (Elliott et al., 2016), {text}: 29,000 pairs, "
    notes += "1,014 for validation; the test set is test_2016_flickr."
    return NamedCorpus(name, splits, notes)


def _newstest(file: str, english: str, german: str, local: str | None = None):
    sides = []
    for code, language, digest in (
        ("eng", "en", english),
        ("deu", "de", german),
    ):
        names = [f"newstest-en-de/{file}.{language}"]
        if local is not None:
            names.append(f"newstest-en-de/{local}.{language}")
        address = f"{_NEWSTEST}/{file}.{code}"
        sides.append(NamedFile(address, digest, tuple(names)))
    name = f"{file.replace('-', '')}_en_de"
    notes = "A test set of WMT, which can be used for any split."
    return NamedCorpus(name, {"test": tuple(sides)}, notes)


def _demo():
    hashes = {
        "train": (
            "87342955850107e4883732a721faa18eeff5fb5b77b2751d63c30f58e6b57461",
            "706cee6655ff0078d383d2302a62bb52caf26a521c7a1fb0b9c27b577f7d51eb",
        ),
        "valid": (
            "2d030f2597bcf43d975d9a7e4731952d03cc85f9654063371f89d3c74a8db18d",
            "6ac18945e90368cc326ee8ee1cf0223f3711df2a42b85b1d5cc445f67e454ff0",
        ),
        "test": (
            "3e76ba0c4b939f868591e8d0efb878f5707d27671449b1aa1a442f2b1a8a0f51",
            "db860d86a1a72ab8a08a8e5dba1bba9da18768a6d81160f4cd36ea6cf8db27e8",
        ),
    }
    return NamedCorpus(
        "demo_de_en",
        {
            split: (
                DemoFile(f"demo_de_en/{split}.de", german),
                DemoFile(f"demo_de_en/{split}.en", english),
            )
            for split, (german, english) in hashes.items()
        },
        "The corpus of `deepnmt quickstart`, made by a grammar: 40,000 pairs, "
        "500 for validation and 500 for the test. Nothing is downloaded.",
    )


def _iwslt14_47k():
    def file(split, language, digest):
        name = f"iwslt14-de-en/{split}.{language}"
        return NamedFile(None, digest, (name,))

    return NamedCorpus(
        "iwslt14_47k_de_en",
        {
            "train": (
                file("train", "de", _IWSLT14_47K[0]),
                file("train", "en", _IWSLT14_47K[1]),
            ),
            "valid": (
                file("valid", "de", _IWSLT14_47K[2]),
                file("valid", "en", _IWSLT14_47K[3]),
            ),
        },
        "47,047 of the 160,239 training pairs of IWSLT 2014, lower-cased and "
        "tokenized, and the 7,283 validation pairs: scores are not comparable "
        "with those of `iwslt14_de_en`. At no public address (`--data-dir`).",
    )


def _tatoeba():
    def file(split, language, digest):
        return NamedFile(None, digest, (f"tatoeba-en-de/{split}.{language}",))

    return NamedCorpus(
        "tatoeba_en_de",
        {
            split: (file(split, "en", english), file(split, "de", german))
            for split, (english, german) in _TATOEBA.items()
        },
        "Short everyday sentences of Tatoeba, as exported for Anki by "
        "manythings.org on 2018-05-13 (CC BY 2.0 FR): 164,792 pairs, 2,000 for "
        "validation and 2,000 for the test. No sentence is in two splits, "
        "whatever its case and final punctuation. At no public address "
        "(`--data-dir`).",
    )


_IWSLT14_47K = (
    "7f0688cb942dbbc69cbcf2bdde292aa544749c2b2cd9cfbac6a2c11b17a32a93",
    "a152299bfe33c3ac72f9c59afaae4ba7fbaa868d8eac00480d569a9318003a5a",
    "3f051579c9d8c7281a6ea8c72ad4ae09dbaa9bb24dfd41166f2c3a3df7cd940a",
    "e6d7317a9772cd1ed970910c611e9e7dada1f34439269b44a9d801334bff948d",
)
_TATOEBA = {
    "train": (
        "ce421f3cd16f32690c23843794a66e7f728e110e683459cb1337090fc663d85f",
        "208abdc72d029a313312ea15cb5af76f9e45e35e3249d68940934f9b22883fe6",
    ),
    "valid": (
        "52b3ea6673bc382309e0c49c1b876ebb04e6b5e0ea72b93e56c156ab5aff9364",
        "c88d8dd18b7d0397d7933db2346261609bddc350864ac7df1cb3edc097506692",
    ),
    "test": (
        "29db546ce6a699204ea5bdea91bb26908ba0471b327d26b2ccd7dbf917476576",
        "f5fc582dc180b169493fcc32358f27a563f03830f3c2f4f1094bd4b2257b69fa",
    ),
}
SMALL_CORPORA = (
    _demo(),
    _iwslt14_47k(),
    _multi30k(
        "multi30k_en_de",
        True,
        {
            "train": (
                "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
                "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
            ),
            "valid": (
                "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
                "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
            ),
            "test": (
                "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
                "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
            ),
        },
    ),
    _multi30k(
        "multi30k_tok_en_de",
        False,
        {
            "train": (
                "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
                "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
            ),
            "valid": (
                "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
                "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
            ),
            "test": (
                "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
                "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
            ),
        },
    ),
    _newstest(
        "news-test2008",
        "134e1140848bb0d05e774dbe35b8b69602faf401250c03dbb437bdbe38c37b6f",
        "6d86c805e6cd008c11143816daac272fdf5a3afea816983c43005717d6fe3ae2",
    ),
    _newstest(
        "newstest2009",
        "3fc92718e7b994ca0a5dc57e63b68d5c80244a56e5bb1cec11d2e8dd10b3ff3c",
        "41f7d4a766a99f78646474dbd21af0dd0285a5dad5c48d1b627334c11a1771d9",
    ),
    _newstest(
        "newstest2010",
        "1ebece77e333965cbc66fde735a6f17e026b4d6690f4f7fdaba839b7bdadac3b",
        "4f4b02d3abe150ca47a745d138d90f688edb20dd2d2fedca16aa05fd1e2018b1",
    ),
    _newstest(
        "newstest2011",
        "d387569743c0fa9097df4d4e2c1dd9e6ba9ef3cee6e0f473da3204c887dcf8fd",
        "033bc05659f61c5e51170973267d21e23a9a968557b866f3842c92e416a60e1b",
    ),
    _newstest(
        "newstest2012",
        "f9e51f85c4948033fc7d77ef427f4d88908a8dd3f778970f62d0baafac3ff97e",
        "946b9587b79271b0f3ce9cc8c0e5b310e3021ef598e1ba5dc2a24fef8960de30",
    ),
    _newstest(
        "newstest2013",
        "ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e",
        "d7ea35ab91ff3709e03ad9cb6bf5b4f2cc775cd2d72efd5254c4aec5e69663ca",
        local="valid",
    ),
    _newstest(
        "newstest2014",
        "7294bccf2879a97b3706b95c9595f1459617a8ee7130d5d8581c910e69736971",
        "ae5d110486bc33d7175e9e28c7d0051eb3e5fcd2166dd93371089852c091a20e",
        local="test",
    ),
    _tatoeba(),
)

"""Known corpora of one language: summaries and grammatical corrections."""

from keras_deepnmt.data.known_corpora.sources import (
    Archive,
    BuiltFile,
    Member,
    NamedCorpus,
    NamedFile,
)

_JFLEG = (
    "https://raw.githubusercontent.com/keisks/jfleg/"
    "ee06ff806a208aba815ac45313f4e750a48330a5"
)
# Of the sentences and of their corrections by each annotator, in this order.
_JFLEG_DEV = (
    "4a0e8b86d18a1058460ff0a592dac1ba68986d135256efbd27e997ac43f295f8",
    "adea6287c6e2240b7777e63cd56f8e228e742bbfb42c5152bc0bd2bc91f4e53e",
    "d40d56ec7468ddab03fdcca97065ab3f9d391d749dbc7097b7c777a19ce4242e",
    "b070691d633e0c4143d96ba21299ae71cb126086517d2970df47420842067793",
    "9187fd834693fa77d07957991282d32d61ff84a207c25cbfab318c871bacdbc4",
)
_JFLEG_TEST = (
    "893db119162487aa7f956b65978453576919e6797cd6c1955f93b7a8b9f4bbd8",
    "875953280a3ea1dea2827337b1778c0105f0c0aa79f2517a6e0e42db5e5e170c",
)
# The first sentences of the development set are for training.
_JFLEG_TRAIN_LINES = (0, 654)
_JFLEG_VALID_LINES = (654, 754)


def _jfleg_files(split, hashes):
    archives = []
    for place, digest in enumerate(hashes):
        name = f"{split}.ref{place - 1}" if place else f"{split}.src"
        address = f"{_JFLEG}/{split}/{name}"
        archives.append(Archive(address, f"sha256:{digest}", f"jfleg/{name}"))
    return archives


def _jfleg():
    sources, *references = _jfleg_files("dev", _JFLEG_DEV)
    test_sources, test_references = _jfleg_files("test", _JFLEG_TEST)

    def pair(split, sides, lines=None):
        return tuple(
            BuiltFile(
                f"jfleg_parts/{split}.{name}",
                tuple(Member(archive, lines=lines) for archive in side),
            )
            for name, side in zip(("src", "trg"), sides, strict=True)
        )

    return NamedCorpus(
        "jfleg",
        {
            "train": pair(
                "train", ([sources] * 4, references), _JFLEG_TRAIN_LINES
            ),
            "valid": pair(
                "valid", ([sources], references[:1]), _JFLEG_VALID_LINES
            ),
            "test": pair("test", ([test_sources], [test_references])),
        },
        "English sentences of learners and their corrections (Napoles et al., "
        "2017), tokenized. There is no training set: the first 654 sentences "
        "of the development set with four corrections each are for training, "
        "the other 100 with one for validation. Of the four corrections of "
        "each of the 747 test sentences this corpus has the first one.",
    )


def _at_no_address(folder, names, splits):
    """The splits of a corpus that is at no public address in this form."""
    return {
        split: tuple(
            NamedFile(None, digest, (f"{folder}/{split}.{name}",))
            for name, digest in zip(names, hashes, strict=True)
        )
        for split, hashes in splits.items()
    }


_SCITLDR = {
    "train": (
        "442f9da1aa422138d98fb71e7ac925484f500f6038d830f25b0880f4c97a10d5",
        "090881bfbe8167605e1cab33847df81b8ec949a1dc15a71b856ed3c0f858a582",
    ),
    "valid": (
        "ffef967a50de2611e76a08a8467cccebc1b607024e2edcacd9b5c51a77c444e9",
        "1afd29d4dd28841a4d6acc6a682e3d0ba7e794931f5d5f51cbb243bc4efec95c",
    ),
    "test": (
        "c160d40e2a7c44387432ffeb100bd6ec9960a6c897faf3d36713db39445c2184",
        "784e15327015e2756df597b195064fd726b0afb9368a059aecce66e15324aa9c",
    ),
}
_UA_GEC = {
    "train": (
        "6d38f77a7c9188744fde40e0971275c92f147b618f419877cf829953c8898b25",
        "84241de17a24329a8015ca451dcdca964b04cb6df1db3fb8aebbf85facfbdc6c",
    ),
    "valid": (
        "b325ced513ef2a72888d4a0c1483cce180608d5986f6ad054aa85c9d33123728",
        "c08d4c86fe84c233f43c968d81ebedc50eac022691cd020ebc6746251f2af25a",
    ),
}
MONOLINGUAL_CORPORA = (
    _jfleg(),
    NamedCorpus(
        "scitldr",
        _at_no_address("scitldr", ("src", "trg"), _SCITLDR),
        "Abstracts of computer science papers and one-sentence summaries "
        "(SciTLDR-A, Cachola et al., 2020): 1,992 pairs, 619 for validation "
        "and 618 for the test. At no public address in this form "
        "(`--data-dir`): a line of the source is the sentences of an abstract "
        "with a space between them, the target is the first summary.",
    ),
    NamedCorpus(
        "ua_gec",
        _at_no_address("ua-gec", ("tok.src", "tok.trg"), _UA_GEC),
        "Ukrainian sentences and their corrections (UA-GEC 2.0, grammar only, "
        "Syvokon et al., 2023), tokenized: 30,809 pairs, and 1,373 for "
        "validation from every 20th document. At no public address in this "
        "form (`--data-dir`). The test set is the corpus' M2 file, for "
        "`deepnmt evaluate --m2`.",
    ),
)

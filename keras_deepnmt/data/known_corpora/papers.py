"""The corpora of the papers, put together from the archives of their makers.

Hashes of the WMT and OPUS archives are those that TensorFlow Datasets publishes
(of SETimes for an earlier address of the same file), and the one of the WMT15
test sets that sacreBLEU publishes.
"""

from keras_deepnmt.data.known_corpora.small_corpora import SMALL_CORPORA
from keras_deepnmt.data.known_corpora.sources import (
    Archive,
    BuiltFile,
    Member,
    NamedCorpus,
)

_EUROPARL = Archive(
    "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
_COMMON_CRAWL = Archive(
    "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
_COMMENTARY_9 = Archive(
    "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
_COMMENTARY_10 = Archive(
    "https://www.statmt.org/wmt15/training-parallel-nc-v10.tgz",
    "sha256:11e053e7ea29e87e69a1ad05e61cb559820947ecec144ea8c1d6cf05017c9602",
)
_WMT15_TEST = Archive(
    "https://www.statmt.org/wmt15/test.tgz",
    "md5:67e3beca15e69fe3d36de149da0a96df",
    "wmt15-test.tgz",
)
_SETIMES = Archive(
    "https://object.pouta.csc.fi/OPUS-SETIMES/v2/tmx/en-tr.tmx.gz",
    "sha256:23581212dc3267383198a92636219fceb3f23207bfc1d1e78ab60a2cb465eff8",
    "setimes-v2-en-tr.tmx.gz",
)
_IWSLT14_DE = Archive(
    "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
    file_name="iwslt14-de-en.tgz",
)
_IWSLT14_TR = Archive(
    "https://wit3.fbk.eu/archive/2014-01/texts/tr/en/tr-en.tgz",
    file_name="iwslt14-tr-en.tgz",
)
_SMALL = {corpus.name: corpus for corpus in SMALL_CORPORA}


def _built(corpus, split, languages, members_of):
    """The two sides of a split; `members_of` gives the members of a side."""
    return tuple(
        BuiltFile(f"{corpus}/{split}.{language}", tuple(members_of(language)))
        for language in languages
    )


def _wmt(name, commentary, commentary_path, notes, **splits):
    def members(language):
        for archive, path in (
            (_EUROPARL, "training/europarl-v7.de-en"),
            (_COMMON_CRAWL, "commoncrawl.de-en"),
            (commentary, commentary_path),
        ):
            yield Member(archive, f"{path}.{language}")

    train = _built(name, "train", ("en", "de"), members)
    return NamedCorpus(name, {"train": train, **splits}, notes)


def _newstest(year):
    return _SMALL[f"newstest{year}_en_de"].splits["test"]


def _newstest_2015():
    def members(language):
        side = "src" if language == "en" else "ref"
        path = f"test/newstest2015-ende-{side}.{language}.sgm"
        yield Member(_WMT15_TEST, path, "sgm")

    return _built("wmt15_en_de", "test", ("en", "de"), members)


def _talks(archive, pair, test_sets):
    """The members of an archive of IWSLT 2014 for a side and split."""

    def train(language):
        path = f"{pair}/train.tags.{pair}.{language}"
        yield Member(archive, path, "talks")

    def held_out(language):
        for test_set in test_sets:
            path = f"{pair}/IWSLT14.{test_set}.{pair}.{language}.xml"
            yield Member(archive, path, "sgm")

    return train, held_out


def _iwslt14_de_en():
    name, languages = "iwslt14_de_en", ("de", "en")
    train, test = _talks(
        _IWSLT14_DE,
        "de-en",
        (
            "TED.dev2010",
            "TEDX.dev2012",
            "TED.tst2010",
            "TED.tst2011",
            "TED.tst2012",
        ),
    )
    return NamedCorpus(
        name,
        {
            "train": _built(name, "train", languages, train),
            "test": _built(name, "test", languages, test),
        },
        "Talks of IWSLT 2014, cased and not tokenized; the test set is the "
        "usual one, of five sets. There is no validation set: the recipes take "
        "pairs out of the training text, as the papers do. No hash of the "
        "archive is published: that of the first download is recorded.",
    )


def _iwslt14_tr_en():
    name, languages = "iwslt14_tr_en", ("tr", "en")
    train, valid = _talks(_IWSLT14_TR, "tr-en", ("TED.dev2010", "TED.tst2010"))
    _, test = _talks(_IWSLT14_TR, "tr-en", ("TED.tst2011", "TED.tst2012"))
    return NamedCorpus(
        name,
        {
            "train": _built(name, "train", languages, train),
            "valid": _built(name, "valid", languages, valid),
            "test": _built(name, "test", languages, test),
        },
        "Talks of IWSLT 2014, not tokenized. Of the test sets of Shen et al. "
        "(2018), tst2011 to tst2014, it has the first two. The address may ask "
        "for a login: download the archive by hand as `iwslt14-tr-en.tgz` and "
        "give its folder (`--data-dir`). No hash of it is published: that of "
        "the first use is recorded.",
    )


def _setimes():
    def members(language):
        other = "en" if language == "tr" else "tr"
        yield Member(_SETIMES, form="tmx", languages=(language, other))

    name = "setimes_tr_en"
    train = _built(name, "train", ("tr", "en"), members)
    notes = "News of the Southeast European Times, from OPUS, not tokenized."
    return NamedCorpus(name, {"train": train}, notes)


PAPER_CORPORA = (
    _iwslt14_de_en(),
    _iwslt14_tr_en(),
    _setimes(),
    _wmt(
        "wmt14_en_de",
        _COMMENTARY_9,
        "training/news-commentary-v9.de-en",
        "Europarl v7, Common Crawl and News Commentary v9: about 4.5 million "
        "pairs; newstest2013 and newstest2014. 1.7 GB to download.",
        valid=_newstest(2013),
        test=_newstest(2014),
    ),
    _wmt(
        "wmt15_en_de",
        _COMMENTARY_10,
        "news-commentary-v10.de-en",
        "Europarl v7, Common Crawl and News Commentary v10; newstest2014 and "
        "newstest2015. 1.7 GB to download.",
        valid=_newstest(2014),
        test=_newstest_2015(),
    ),
)

"""What must be true of translations that are equal to their references.

Whatever a tokenizer does to a text, a model that predicts each reference gets
BLEU 100: in the validations of a run, and from the file of its translations.
"""

from types import SimpleNamespace

import pytest

from keras_deepnmt.cli import main
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.evaluation import BleuCallback

SENTENCES = {
    "zh": "今天，我们在№{}画了{}本旧书……不是吗？「好！」\u3000他说：“{}％”。",
    "en": "This morning “№ {}” painted {} old books … isn’t it？ ½ of {} ﬁles.",
}


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("language", SENTENCES)
def test_they_score_100(tmp_path, language, joint, capsys):
    numbers = [(n, n % 7, n % 11) for n in range(60)]
    files = {"source": tmp_path / "a.de", "target": tmp_path / "a.xx"}
    texts = {"source": "Haus {}, {} und {}.", "target": SENTENCES[language]}
    for side, file in files.items():
        lines = [texts[side].format(*values) + "\n" for values in numbers]
        file.write_text("".join(lines), encoding="utf-8")
    options = PrepareOptions(
        train=[CorpusOptions(str(files["source"]), str(files["target"]))],
        valid_pairs=20,
        vocabulary_size=120,
        joint=joint,
        target_language=language,
    )
    prepare_corpus(options, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    sources, references = data.texts("valid")
    tokenizer = data.target_tokenizer
    rows = [row for _, row in data.store("valid").read(range(len(references)))]
    callback = BleuCallback(
        lambda given: tokenizer.decode(rows), sources, references, verbose=0
    )
    callback.set_model(SimpleNamespace(num_compilations=0, variables=[]))
    logs = {}
    callback.on_epoch_end(0, logs)
    assert logs["val_bleu"] == pytest.approx(100)
    assert f"tok:{'zh' if language == 'zh' else '13a'}|" in str(callback.score)

    hypotheses, gold = tmp_path / "out", tmp_path / "references"
    for file, lines in (
        (hypotheses, tokenizer.decode(rows)),
        (gold, references),
    ):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    capsys.readouterr()
    arguments = ["--hypotheses", str(hypotheses), "--references", str(gold)]
    assert main(["evaluate", *arguments, "--language", language]) in (0, None)
    scores = dict(
        line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()
    )
    assert scores["bleu"] == scores["chrf"] == "100.00"
    assert scores["ter"] == "0.00"

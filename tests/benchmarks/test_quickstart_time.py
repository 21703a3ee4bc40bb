"""What must be true of the measured stages of the quickstart."""

from benchmarks.speed.quickstart import bleu_of, stage_seconds

MESSAGES = """
[    0 s] Writing a German-English corpus to quickstart/corpus

[    1 s] Preparing: filtering, training a tokenizer, encoding
Reading test

[    3 s] Training (the first updates are slow: the model is compiled)
update 5/1430: loss 2.748

[  120 s] Translating the test set, which training does not use

[  130 s] Exporting a SavedModel and running it without this package

[  145 s] Done. Try:
"""


def test_the_seconds_of_a_stage_end_where_the_next_begins():
    assert stage_seconds(MESSAGES) == {
        "corpus_seconds": 1,
        "preparation_seconds": 2,
        "training_seconds": 117,
        "evaluation_seconds": 10,
        "export_seconds": 15,
    }


def test_bleu_is_read_with_its_signature():
    output = "test bleu 88.97 (nrefs:1|tok:13a)\ntest chrf 93.1 (x)\n"
    assert bleu_of(output) == {
        "bleu": 88.97,
        "bleu_signature": "nrefs:1|tok:13a",
    }

"""What must be true of the text with made-up numbers.

No number of the test is in the training text, and both sides have the same one.
"""

import random

from benchmarks.quality import number_copying


def test_a_number_takes_the_place_of_the_word_on_both_sides():
    pair = ("Zwei Hunde sehen den Ritter.", "Two dogs see the knight.")
    assert number_copying.has_number(pair)
    assert number_copying.with_number(pair, "4711") == (
        "4711 Hunde sehen den Ritter.",
        "4711 dogs see the knight.",
    )
    for other in (
        ("Der Hund sieht zehn Ritter.", "The dog sees knights."),
        ("Zwei Hunde sehen zehn Ritter.", "Two dogs see ten knights."),
        ("Zwei Hunde", "Three dogs"),
    ):
        assert not number_copying.has_number(other)


def test_made_up_numbers_have_the_digits_that_are_asked_for():
    draw = random.Random(0)
    for digits in range(1, 8):
        for _ in range(50):
            assert len(number_copying.made_number(draw, digits)) == digits


def test_the_numbers_of_the_test_are_unseen(tmp_path):
    files = number_copying.write_corpus(tmp_path, train_pairs=2_000)
    train = number_copying.read_lines(files["train", "source"])
    seen = {n for line in train for n in number_copying.numbers_in(line)}
    assert {len(number) for number in seen} == set(range(1, 8))
    tests = [
        number_copying.read_lines(files["numbers", side])
        for side in ("source", "target")
    ]
    assert len(tests[0]) == number_copying.TEST_PAIRS
    for source, target in zip(*tests, strict=True):
        number = number_copying.number_in(source)
        assert number == number_copying.number_in(target)
        assert len(number) == 7 and number not in seen

"""What must be true of the parts of a text that a translation keeps.

* each kind has a pattern, and examples of it are found whole
* ordinary text is not taken for an item: the ends of sentences, abbreviations,
  comparisons, percentages, prices, dates
* items end before punctuation, and before letters of Chinese and the like
* long lines take no longer than their length
"""

import time

import pytest

from keras_deepnmt.data.kept_items import (
    PATTERNS,
    find_kept_items,
)

EXAMPLES = {
    "comment": ["<!-- a > b -->"],
    "code": ['<bpt id="1">&lt;b></bpt>'.replace(">&lt;b>", ">&lt;b&gt;")],
    "tag": [
        *("<b>", "</b>", "<br/>", "<br />", '<x id="1"/>', "<mrk mid='0'>"),
        *('<a href="a.html?b=c>d" class=x>', "</a >", "<g:a>", "<Straße/>"),
    ],
    "url": [
        *("https://example.org", "http://a.b/c?d=e&f#g", "www.example.org/ä"),
        *("ftp://a.b/c.txt", "https://de.wikipedia.org/wiki/Hund_(Tier)"),
        *("mailto:a@b.de", "https://a.b/{id}/c"),
    ],
    "email": ["a@b.de", "Jörg.Fuß+x@mail-1.example.co.uk"],
    "braces": ["{{x}}", "{{ user.name }}"],
    "dollar": ["${x}", "${user.name}"],
    "brace": ["{name}", "{0}", "{}", "{0:.2f}", "{user[id]}"],
    "percent": ["%s", "%d", "%1$d", "%(name)s", "%.2f", "%5d", "%ld", "%%"],
    "symbol": ["⟪NAME_1⟫", "⟪1⟫"],
    "windows_path": [r"C:\x\y.txt", r"D:\a", r"\\server\a\b.doc"],
    "path": ["/etc/hosts", "/usr/local/bin/", "~/a/b", "./a/b", "../a/b-1.2"],
    "file": ["report_v2.pdf", "Foto.JPG", "src/main.py", "a-b.tar.gz"],
    "number": [
        *("1234567", "+49 30 1234567", "(030) 123 45 67", "030/1234567"),
        *("1234 5678 9012 3456", "DE89 3704 0044 0532 0130 00", "555-123-4567"),
        *("+49 (0)30 1234567", "0049-30-1234567", "192.168.100.21"),
    ],
}
CASES = [(kind, text) for kind, texts in EXAMPLES.items() for text in texts]


def found(text):
    return [item.text for item in find_kept_items(text)]


def test_each_pattern_has_examples():
    assert list(EXAMPLES) == list(PATTERNS)


@pytest.mark.parametrize(("kind", "text"), CASES)
@pytest.mark.parametrize(
    "frame",
    ["{}", "Siehe {} bitte.", "({}), dann", "„{}“.", "ja: {}!", "我 {}，"],
)
def test_an_item_is_found_whole(kind, text, frame):
    before, _, after = frame.partition("{}")
    [item] = find_kept_items(before + text + after)
    assert (item.kind, item.text) == (kind, text)
    assert (item.begin, item.end) == (len(before), len(before) + len(text))


@pytest.mark.parametrize(
    "text",
    [
        *("ja.Nein", "Ende.Anfang", "z.B.", "d.h. u.a.", "usw...", "Nr. 5"),
        *("3 < 5 > 2", "a<b und c>d", "<3", "a < b", "x <- y", "-> <-", "<b"),
        *("50 % sind", "50% sind", "100%ig", "50%sind", "5 %", "%", "a%b"),
        *("12,50 €", "$ 5", "$5", "1.234.567 €", "1.234.567,89", "1 000 000"),
        *("1,234,567.89", "3.14159265", "123456", "12.05.2024", "2024-05-12"),
        *("12. 5. 2024", "5/12/2024", "1914-1918", "1914–1918", "12:30:45"),
        *("und/oder", "50 km/h", "24/7", "1/2", "m/s", "/", "//", "a / b"),
        *(
            "@hans",
            "a @ b",
            "AT&T",
            "&amp; &lt;b&gt; &#228;",
            "#1",
            "C:",
            "C: a",
        ),
        *("{ein Wort}", "{", "}", "{ }", "⟪ ⟫", "⟪ein Wort⟫", "$", "${"),
        *(
            "so.weiter",
            "gut.Das",
            "Foto.Jpgs",
            ".pdf",
            "v1.2.3",
            "www",
            "http:",
        ),
    ],
)
def test_ordinary_text_has_no_items(text):
    assert found(text) == []
    assert found(f"Das ist {text}, ja?") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Siehe http://x.y/z.", ["http://x.y/z"]),
        ("(http://x.y/z).", ["http://x.y/z"]),
        ("http://x.y/z, www.a.de!", ["http://x.y/z", "www.a.de"]),
        ("/etc/hosts. C:\\a\\b.txt.", ["/etc/hosts", "C:\\a\\b.txt"]),
        ("<me@x.de>", ["me@x.de"]),
        ("(foto.jpg)", ["foto.jpg"]),
        ("Am 12.05.2024 1234567.", ["1234567"]),
        (
            "打开report.pdf。电话1234567，写a@b.cn吧",
            ["report.pdf", "1234567", "a@b.cn"],
        ),
        (
            "访问https://x.y/a。谢谢http://x.y中文",
            ["https://x.y/a", "http://x.y"],
        ),
        ("{a}{b}%s%d", ["{a}", "{b}", "%s", "%d"]),
        ("<b>{x}</b><br/>", ["<b>", "{x}", "</b>", "<br/>"]),
    ],
)
def test_items_end_before_what_follows(text, expected):
    assert found(text) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part",
    [
        *("a", "a/", "1 ", "1-", "<a ", "{", "a.b.", "x@", "/a", "狗", "%("),
        *("(1", "<a b='", "http://(", "⟪", "<!--", "a_", "<ph>", "\\\\a"),
    ],
)
def test_long_lines_take_a_time_in_proportion(part):
    started = time.perf_counter()
    find_kept_items(part * 20_000)
    # A pattern that looks back over all of it would take minutes.
    assert time.perf_counter() - started < 10

"""The web page in a browser: Debian's Chromium, with a server without a model.

A test does what a user does, with the keyboard or the mouse.
"""

import contextlib
import os
import re
import shutil
import threading
from importlib.util import find_spec
from urllib.parse import urlsplit

import numpy as np
import pytest
from threaded_server import threaded_server
from toy_server import SECONDS, Capitals, ToyServer, write_lines

from keras_deepnmt.analysis.figure import HeatMap, Table
from keras_deepnmt.analysis.report_page import Section, report_page
from keras_deepnmt.analysis.sentences import Sentences
from keras_deepnmt.server.request_limits import RequestLimits

pytestmark = pytest.mark.thorough(each_commit=True)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
for reason, is_missing in (
    ("no Chromium is installed", BROWSER is None),
    ("playwright is not installed", find_spec("playwright") is None),
    (
        "axe-playwright-python is missing",
        not find_spec("axe_playwright_python"),
    ),
):
    if is_missing:
        pytest.skip(reason, allow_module_level=True)

MODELS = (("one", ("de", "en")), ("other", ("de", "en")), ("two", ("fr", "de")))
WIDTHS = {"phone": (360, 740), "desk": (1280, 800)}
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    # Chromium's sandbox does not work for root.
    is_root = os.getuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER,
            args=["--no-sandbox"] if is_root else [],
        )
        yield browser
        browser.close()


class PageCapitals(Capitals):
    """The other model has other words."""

    def predict(self, call, rows):
        found = super().predict(call, rows)
        for row in found:
            row["log_prob"] = row["score"]
        return found


@pytest.fixture(scope="module")
def shared_server():
    limits = RequestLimits(max_tokens=12, max_bytes=5_000)
    server = ToyServer(limits=limits, engine=PageCapitals(), models=MODELS)
    server.wait_until_ready()
    with threaded_server(server.app, SECONDS) as server.address:
        yield server
    server.close()


class Visit:
    """A user at the page.

    Attributes:
        page: the browser's page.
        faults: what the browser complained of.
        addresses: what it asked for.
    """

    def __init__(self, page):
        self.page, self.faults, self.addresses = page, [], []
        page.set_default_timeout(1000 * SECONDS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("console", self._note)

    def _note(self, message):
        # Refused requests are tested for what the page says.
        if message.type == "error" and "Failed to load" not in message.text:
            self.faults.append(message.text)

    def at(self, address):
        self.page.goto(address)
        self.page.wait_for_selector("#model option", state="attached")
        return self

    def type(self, text):
        self.page.fill("#text", "")
        self.page.type("#text", text)

    def sees(self, text, selector=".translation"):
        from playwright.sync_api import expect

        expect(self.page.locator(selector).first).to_contain_text(text)

    def word(self, text, selector=".translation"):
        return self.page.locator(f"{selector} button", has_text=text).first

    def linked(self):
        return self.page.locator(".linked").all_inner_texts()


@pytest.fixture
def visit(browser, shared_server):
    """Opens the page; afterwards nothing may have been asked for elsewhere."""
    opened = []

    def visit(width="desk", path="/", scheme="light", at=shared_server):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        context = browser.new_context(
            viewport=size, color_scheme=scheme, accept_downloads=True
        )
        user = Visit(context.new_page())
        opened.append((context, user, at.address))
        return user.at(at.address + path)

    yield visit
    for context, user, address in opened:
        context.close()
        assert not user.faults
        hosts = {urlsplit(url).netloc for url in user.addresses}
        assert hosts - {""} == {urlsplit(address).netloc}


def test_a_sentence_is_translated_while_it_is_typed(visit):
    user = visit()
    user.type("ein Hund")
    user.sees("EIN HUND")
    scores = user.page.locator(".score").all_inner_texts()
    assert [float(text.split()[-1]) for text in scores] == [0.0, -1.0, -2.0]


def test_what_is_typed_is_text_and_no_html(visit):
    user = visit()
    user.type("<b>fett</b> <img src=x>")
    user.sees("<B>FETT</B> <IMG SRC=X>")
    user.sees("<b>fett</b>", ".source-words")
    assert user.page.locator("main b, main img").count() == 0


def test_going_on_typing_cancels_the_request_before(visit):
    user = visit()
    cancelled = []
    user.page.on("requestfailed", lambda r: cancelled.append(r.failure))
    held = []
    user.page.route(
        "**/page/translate",
        lambda route: route.continue_() if held else held.append(route),
    )
    user.type("ein")
    user.page.wait_for_timeout(600)
    assert held and not cancelled
    user.page.type("#text", " Hund")
    user.sees("EIN HUND")
    assert cancelled == ["net::ERR_ABORTED"]


@pytest.mark.thorough
def test_a_slow_answer_never_takes_the_place_of_a_newer_one(visit):
    user = visit()
    # As if requests could not be cancelled.
    user.page.evaluate("AbortController.prototype.abort = () => {}")
    held = []
    user.page.route(
        "**/page/translate",
        lambda route: route.continue_() if held else held.append(route),
    )
    user.type("alt")
    user.page.wait_for_timeout(600)
    user.type("neu")
    user.sees("NEU")
    held[0].continue_()
    user.page.wait_for_timeout(400)
    user.sees("NEU")


def test_requests_wait_for_a_pause_in_typing(visit):
    user = visit()
    user.type("ein kleiner Hund")
    user.sees("EIN KLEINER HUND")
    asked = [url for url in user.addresses if url.endswith("translate")]
    assert len(asked) == 1


@pytest.mark.thorough
def test_the_address_restores_what_was_seen(visit):
    user = visit()
    user.page.select_option("#other", "other")
    user.type("ein Hund")
    user.sees("EIN HUND")
    address = user.page.url
    other = visit(path="/" + address.partition("/#")[2].join(["#", ""]))
    other.sees("EIN HUND")
    assert other.page.input_value("#text") == "ein Hund"
    assert other.page.input_value("#other") == "other"
    assert other.page.locator(".translation").count() == 2
    # What is after the # stays in the browser.
    assert not any("Hund" in url.partition("#")[0] for url in other.addresses)


def test_an_example_is_one_click_away(visit):
    user = visit()
    user.page.locator("#examples button").first.click()
    user.sees("ZWEI HUNDE")
    # A model of another language has other examples.
    user.page.select_option("#model", "two")
    user.sees("Deux", "#examples")


def test_the_pointer_shows_aligned_words(visit):
    user = visit()
    user.type("ein Hund")
    user.sees("ein Hund", ".source-words")
    user.word("HUND").hover()
    assert sorted(user.linked()) == ["HUND", "Hund"]
    user.word("ein", ".source-words").hover()
    assert sorted(user.linked()) == ["EIN", "ein"]
    user.page.mouse.move(0, 0)
    assert user.linked() == []


def test_the_focus_stays_at_its_word(visit):
    user = visit()
    user.type("ein Hund")
    user.sees("ein Hund", ".source-words")
    held = []
    user.page.route("**/page/inspect", lambda route: held.append(route))
    user.word("Hund", ".source-words").focus()
    with user.page.expect_request("**/page/inspect"):
        # As if it had been typed a moment before.
        user.page.evaluate(
            "text => { const field = document.querySelector('#text');"
            "field.value = text; field.dispatchEvent(new Event('input')); }",
            "zwei alte Hunde",
        )
    user.sees("ZWEI")
    assert focused(user) == "alte"
    user.word("ZWEI").focus()
    user.page.keyboard.press("End")
    assert focused(user) == "HUNDE"
    held[0].continue_()
    user.page.locator("details").first.wait_for()
    assert focused(user) == "HUNDE"
    assert sorted(user.linked()) == ["HUNDE", "Hunde"]
    user.page.keyboard.press("ArrowLeft")
    assert focused(user) == "ALTE"
    tab_stops = user.page.locator(".translation button[tabindex='0']")
    assert tab_stops.all_inner_texts() == ["ALTE"]


def focused(user):
    return user.page.evaluate("document.activeElement.innerText")


def test_attention_and_the_layers_of_papers_are_shown(visit):
    user = visit()
    user.type("ein Hund")
    user.page.locator("summary", has_text="Attention").click()
    rows = user.page.locator("details table tbody tr")
    assert rows.nth(0).inner_text().split() == ["EIN", ".90"]
    user.page.locator("summary", has_text="Role interaction").click()
    user.sees("Roles of the source tokens", "details:last-of-type")
    # They stay open for the next sentence.
    user.type("zwei Hunde")
    user.sees("ZWEI", "details table")


def test_a_translation_is_completed_from_a_word_on(visit):
    user = visit()
    user.type("ein Hund")
    user.sees("ein Hund", ".source-words")
    user.word("HUND").click()
    assert user.page.input_value("#begin") == "EIN HUND"
    # The word is selected: what is typed takes its place.
    user.page.keyboard.type("CAT")
    user.sees("EIN CAT EIN HUND")
    given = user.page.locator(".given").all_inner_texts()
    assert given == ["EIN", "CAT"]
    assert "begin=EIN+CAT" in user.page.url
    user.page.keyboard.press("Escape")
    user.sees("EIN HUND")
    assert user.page.locator("#begin").is_hidden()


def test_words_that_differ_between_two_models_are_marked(visit):
    user = visit()
    user.page.route("**/page/translate", answer_as_another)
    user.page.select_option("#other", "other")
    user.type("ein kleiner Hund")
    marks = user.page.locator(".translation mark")
    marks.nth(1).wait_for()
    assert marks.all_inner_texts() == ["KLEINER", "GROSSER"]


def test_letters_are_compared_in_scripts_without_spaces(visit):
    marked = visit().page.evaluate(
        "async ([text, other]) => {"
        "const d = await import('/page/files/differences.js');"
        "const words = d.wordsOf(text);"
        "const differ = d.differing(words, d.wordsOf(other));"
        "return words.filter((_, place) => differ[place]); }",
        ["我有两只狗。", "我有一只狗。"],
    )
    assert marked == ["两"]


def answer_as_another(route):
    asked = route.request.post_data_json
    answer = route.fetch()
    text = answer.text()
    if asked["model"] == "other":
        text = text.replace("KLEINER", "GROSSER")
    route.fulfill(response=answer, body=text)


def test_another_translation_can_be_looked_into(visit):
    user = visit()
    user.type("ein Hund")
    user.sees("HUND!", ".others li:nth-child(2)")
    user.page.locator(".others button").nth(1).click()
    user.sees("EIN HUND!")
    assert (
        user.page.locator(".others [aria-current]")
        .inner_text()
        .startswith("EIN HUND!")
    )
    # Without an answer nothing is seen of the translation before.
    user.page.locator("details").first.wait_for()
    user.page.route("**/page/inspect", lambda route: route.abort())
    user.page.locator(".others button").nth(0).click()
    user.sees("No look inside the model", ".message")
    assert user.page.locator("details").count() == 0
    user.page.unroute("**/page/inspect")
    user.page.locator(".others button").nth(1).click()
    user.page.locator("details").first.wait_for()
    assert not user.page.locator(".card .message").first.inner_text()


@pytest.mark.thorough
def test_all_is_reached_with_the_keyboard_alone(visit):
    user = visit()
    press = user.page.keyboard.press
    user.page.keyboard.type("ein Hund")
    user.sees("ein Hund", ".source-words")
    reached = []
    for _ in range(20):
        press("Tab")
        reached.append(
            user.page.evaluate(
                "(e => e.id || e.closest('.words, .others')?.className)"
                "(document.activeElement)"
            )
        )
        if reached.count("words") == 1 and reached[-1] == "words":
            # The arrow keys move from word to word.
            press("ArrowRight")
            assert sorted(user.linked()) == ["HUND", "Hund"]
    assert {"words", "others", "file", "theme", "model", "other"} <= {*reached}
    user.word("EIN").focus()
    press("End")
    press("Enter")
    user.page.keyboard.type("X")
    user.sees("EIN X EIN HUND")


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", list(WIDTHS))
def test_nothing_is_found_by_axe_or_hidden_at_a_side(visit, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    user = visit(width, "/#text=ein+Hund&other=other&begin=A", scheme)
    user.sees("A EIN HUND")
    user.page.locator("details").nth(3).wait_for()
    for summary in user.page.locator("summary").all():
        summary.click()
    found = Axe().run(user.page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    widths = user.page.evaluate(
        "[document.documentElement.scrollWidth, innerWidth]"
    )
    assert widths[0] <= widths[1]
    color = user.page.evaluate("getComputedStyle(document.body).color")
    is_dark = int(re.search(r"\d+", color)[0]) > 128
    assert is_dark == (scheme == "dark")


def test_the_colors_that_a_user_chooses_stay(visit):
    user = visit()
    user.page.click("#theme")
    user.page.reload()
    user.sees("Light", "#theme")


def test_a_sentence_that_is_too_long_is_refused_in_words(visit):
    user = visit()
    user.page.fill("#text", "wort " * 12)
    user.sees("at most 12 tokens", ".message.bad")
    user.page.fill("#text", "kurz")
    user.sees("KURZ")
    assert not user.page.locator(".message.bad").is_visible()


@pytest.mark.thorough
def test_a_busy_server_is_asked_again(visit):
    user = visit()
    number = iter(range(9))

    def refuse_first(route):
        if next(number):
            route.continue_()
        else:
            route.fulfill(
                status=429, headers={"Retry-After": "1"}, json={"error": "full"}
            )

    user.page.route("**/page/translate", refuse_first)
    user.page.fill("#text", "ein Hund")
    user.sees(
        "Too many sentences wait at the moment. Trying again in 1 s.", "p.bad"
    )
    user.sees("EIN HUND")


def test_a_server_that_is_gone_is_said_to_be(visit):
    user = visit()
    user.page.route("**/page/translate", lambda route: route.abort())
    user.page.fill("#text", "ein Hund")
    user.sees("The server does not answer. Does it still run?", "p.bad")


def test_a_key_is_asked_for_and_sent(browser, visit):
    server = ToyServer(keys=["secret"], models=MODELS[:1])
    server.wait_until_ready()
    with (
        contextlib.closing(server),
        threaded_server(server.app, SECONDS) as server.address,
    ):
        user = visit(at=server, path="/#text=ein+Hund")
        user.sees("The server asks for a key.", "p.bad")
        user.page.fill("#key", "wrong")
        user.page.keyboard.press("Enter")
        user.sees("does not know this key", "p.bad")
        user.page.fill("#key", "secret")
        user.page.keyboard.press("Enter")
        user.sees("EIN HUND")
        assert "secret" not in user.page.url
        user.page.reload()
        user.sees("EIN HUND")
        assert user.page.locator("#key-form").is_hidden()


def test_a_document_is_handed_in_and_back(visit, tmp_path):
    user = visit()
    file = tmp_path / "notes.txt"
    file.write_text("ein Hund\n\nzwei\n")
    user.page.focus("#file")
    user.page.set_input_files("#file", file)
    user.sees("2 texts translated.", "#document-status")
    with user.page.expect_download() as download:
        user.page.keyboard.press("Enter")
    assert download.value.suggested_filename == "notes.en.txt"
    content = download.value.path().read_text()
    assert content == "EIN HUND\n\nZWEI\n"
    file.write_text("a" * 6_000)
    user.page.set_input_files("#file", file)
    user.sees("too large", "#document-status")
    # A browser says nothing of a file that is chosen already.
    assert user.page.input_value("#file") == ""


@contextlib.contextmanager
def slow_lines(server):
    """Lets texts of documents wait; yields what lets them go on, in steps."""
    may_go, begun = threading.Semaphore(0), threading.Semaphore(0)
    tasks = server.engine.tasks

    def wait(texts):
        begun.release()
        assert may_go.acquire(timeout=SECONDS)
        return write_lines(texts)

    server.engine.tasks = {**tasks, "lines": wait}
    try:
        yield may_go, begun
    finally:
        server.engine.tasks = tasks
        may_go.release(99)


def test_it_is_shown_how_far_a_document_is(visit, shared_server, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    user = visit()
    file = tmp_path / "notes.txt"
    file.write_text("ein Hund\n" * 12)
    spoken = user.page.evaluate_handle(
        "() => { const said = [], s = document.querySelector("
        "'#document-spoken'); new MutationObserver(() => "
        "said.push(s.textContent)).observe(s, {childList: true}); return said }"
    )
    bar = user.page.get_by_role("progressbar", name="Texts translated")
    with slow_lines(shared_server) as (may_go, begun):
        user.page.set_input_files("#file", file)
        user.page.focus("#text")
        user.sees("0 of 12", "#document-count")
        assert bar.get_attribute("value") == "0"
        found = Axe().run(user.page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        may_go.release()
        user.sees("4 of 12", "#document-count")
        values = bar.evaluate("bar => [bar.value, bar.max]")
        assert values == [4, 12]
        drop_document(user)
        user.sees("a.docx is not taken: another", "#document-status")
        may_go.release(2)
        user.sees("12 texts translated.", "#document-status")
    assert bar.is_hidden()
    # Who types meanwhile goes on where they were.
    assert user.page.evaluate("document.activeElement.id") == "text"
    # A screen reader hears it now and then.
    assert [text for text in spoken.json_value() if text] == [
        "4 of 12 texts are translated.",
        "8 of 12 texts are translated.",
    ]


def test_a_document_can_be_cancelled_with_the_keyboard(
    visit, shared_server, tmp_path
):
    user = visit()
    file = tmp_path / "notes.txt"
    file.write_text("ein Hund\n" * 40)
    with slow_lines(shared_server) as (may_go, begun):
        user.page.set_input_files("#file", file)
        assert begun.acquire(timeout=SECONDS)
        user.page.focus("#file")
        user.page.keyboard.press("Tab")
        user.page.keyboard.press("Enter")
        user.sees("Cancelled.", "#document-status")
        assert user.page.locator("#document-progress").is_hidden()
        assert user.page.evaluate("document.activeElement.id") == "file"
        may_go.release()
        # The server does not go on with it.
        assert not begun.acquire(timeout=0.5)
        may_go.release(99)
        file.write_text("zwei")
        user.page.set_input_files("#file", file)
        user.sees("1 text translated.", "#document-status")


def test_a_document_may_be_dropped_anywhere(visit):
    user = visit()
    text = user.page.evaluate_handle(
        "() => { const data = new DataTransfer();"
        "data.setData('text/plain', 'ein Hund'); return data; }"
    )
    user.page.dispatch_event("body", "dragover", {"dataTransfer": text})
    assert user.page.locator("#drop.over").count() == 0
    data = a_document(user)
    user.page.dispatch_event("body", "dragover", {"dataTransfer": data})
    assert user.page.locator("#drop.over").count() == 1
    user.page.dispatch_event("body", "drop", {"dataTransfer": text})
    assert user.page.locator("#drop.over").count() == 0
    drop_document(user)
    user.sees("must be plain text", "#document-status")


@pytest.fixture
def export(shared_server, monkeypatch):
    """The models are as those of CTranslate2."""
    engine = shared_server.engine
    monkeypatch.setattr(engine, "tasks", {})
    monkeypatch.setattr(engine, "signatures", ("translate_nbest",))
    return engine


def test_only_what_a_model_can_do_is_offered(visit, export):
    user = visit(path="/#text=ein+Hund&begin=A")
    user.sees("EIN HUND")
    # It cannot go on from the beginning in the address, either.
    assert user.page.locator("#begin").is_hidden()
    assert "begin=A" not in user.page.url
    assert user.page.locator(".translation button").count() == 0
    assert user.page.locator(".caption").inner_text() == "score"
    drop_document(user)
    user.sees("one translates no documents", ".card .message.bad")
    assert user.page.locator("#document").is_hidden()
    assert not any("page/document" in url for url in user.addresses)


def a_document(user):
    return user.page.evaluate_handle(
        "() => { const data = new DataTransfer();"
        "data.items.add(new File(['ein Hund'], 'a.docx')); return data; }"
    )


def drop_document(user):
    data = a_document(user)
    user.page.dispatch_event("body", "drop", {"dataTransfer": data})


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_looks_as_the_page_does(browser, tmp_path, scheme):
    from axe_playwright_python.sync_playwright import Axe

    file = tmp_path / "report.html"
    file.write_text(a_report(), encoding="utf-8")
    user = Visit(browser.new_page(viewport=PHONE, color_scheme=scheme))
    user.page.goto(file.as_uri())
    background = user.page.evaluate(
        "getComputedStyle(document.body).background"
    )
    assert background.startswith(
        "rgb(255" if scheme == "light" else "rgb(29, 35, 42)"
    )
    found = Axe().run(user.page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    width = user.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    user.page.close()
    assert not user.faults and user.addresses == [file.as_uri()]


@pytest.fixture
def read_report(browser, tmp_path):
    """Opens a page of figures."""
    opened = []

    def read_report(*figures):
        file = tmp_path / "report.html"
        page = report_page("Title", [Section("Part", [figures])])
        file.write_text(page, encoding="utf-8")
        user = Visit(browser.new_page())
        opened.append(user)
        user.page.goto(file.as_uri())
        return user

    yield read_report
    for user in opened:
        user.page.close()
        assert not user.faults


@pytest.mark.parametrize(
    ("cells", "in_order"),
    [
        (
            [*("3.5", "", "1,200", "-inf", "40.1 ± 0.9", "nan", "−7", "1e+16")],
            [*("-inf", "−7", "3.5", "40.1 ± 0.9", "1,200", "1e+16")],
        ),
        (["0.02", "", "< 0.0001", "0.3"], ["< 0.0001", "0.02", "0.3"]),
        (
            ["21-30 (9)", ">= 51 (2)", "1-10 (5)", "11-20 (7)"],
            ["1-10 (5)", "11-20 (7)", "21-30 (9)", ">= 51 (2)"],
        ),
        (["run-10", "", "run-9", "0"], ["0", "run-9", "run-10"]),
    ],
)
def test_a_table_is_sorted_by_a_column(read_report, cells, in_order):
    rows = [[place, cell] for place, cell in enumerate(cells)]
    table = Table(
        name="t", title="T", caption="C.", header=["place", "it"], rows=rows
    )
    user = read_report(table)
    missing = [cell for cell in cells if cell not in in_order]
    for expected in (in_order[::-1], in_order):
        user.page.click("th >> text=it")
        found = user.page.locator("td:last-child").all_inner_texts()
        # Cells without a value are last, whatever the direction.
        assert found == expected + missing


def test_a_long_table_scrolls_in_its_place_and_is_printed_whole(read_report):
    rows = [[place, "a"] for place in range(200)]
    table = Table(
        name="t", title="T", caption="C.", header=["place", "it"], rows=rows
    )
    page = read_report(table).page
    page.click("text=200 rows")
    box = page.locator(".scroll")
    hidden = "box => box.scrollHeight - box.clientHeight"
    assert box.evaluate(hidden) > 1_000
    # The keyboard reaches it.
    page.wait_for_selector(".scroll[tabindex='0']")
    page.emulate_media(media="print")
    assert box.evaluate(hidden) == 0


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        *[("", "12"), ("Katze", "2"), ("BIG", "1"), ("a dog", "1")],
        # Labels of the page, a name of a run, and the end of one text with the
        # beginning of the next.
        *[("source", ""), ("reference", ""), ("bleu", ""), ("two", "")],
        *[("hunda", "")],
    ],
)
def test_sentences_are_searched_for_their_words_alone(
    read_report, asked, places
):
    user = read_report(some_sentences())
    user.page.fill("input", asked)
    labels = user.page.locator("li.shown .label:has-text('source')")
    assert sorted(label[0] for label in labels.all_inner_texts()) == [*places]


def some_sentences():
    return Sentences(
        name="sentences",
        title="Translations",
        caption="What is shown.",
        places=[0, 1],
        sources=["ein Hund", "eine Katze"],
        references=["a dog", "a cat"],
        systems={"one": ["a big dog", "a cat"], "two": ["dog", "cat"]},
        scores={"one": [50.0, 100.0], "two": [30.0, 30.0]},
        languages=("de", "en"),
    )


def a_report():
    heading = {"title": "A title", "caption": "What is shown."}
    sentences = some_sentences()
    heat_map = HeatMap(
        name="map",
        values=np.eye(3),
        row_names="abc",
        column_names="def",
        row_label="row",
        column_label="column",
        unit="weight",
        **heading,
    )
    table = Table(
        name="table",
        header=["run", "BLEU"],
        rows=[["one", 27.1], ["two", 28.0], ["three", 29.0]],
        **heading,
    )
    groups = [[heat_map], [table], [sentences]]
    return report_page("Two runs", [Section("Scores", groups, "A note.")])

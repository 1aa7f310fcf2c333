"""The report in a real browser: it loads nothing, shows the figures of `fit`, and runs nothing from data."""

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support import chromium
from support.visits import HOSTILE, NAME, visits
from vocabfold.report.findings import findings

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium.home(), args=chromium.OPTIONS)
        yield found
        found.close()


@pytest.fixture
def opened(browser):
    """Return a function that opens a page; all that it asked for and complained of is looked at in the end."""
    said, contexts = [], []

    def visit(path, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield visit
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert said == []


def cells(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def values(page, selector):
    return page.locator(selector).evaluate_all("cells => cells.map((cell) => Number(cell.dataset.value))")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_by_itself_and_fits(opened, reported, width, scheme):
    page = opened(reported.path, width, color_scheme=scheme, offline=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:  # no table is cut off
        for box in page.locator(".scroll").all():
            assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert page.locator(".plot svg").count() == 8
    for box in page.locator(".plot svg").all():
        assert 0 < box.bounding_box()["width"] <= width
    assert page.locator("h2").count() == 6
    for name, said in findings(reported.summary).items():
        place = page.locator(f"#plot-{name}")
        if place.count():
            assert place.get_attribute("aria-label") == said or name == "strip"
            svg = place.locator("svg").bounding_box()
            for legend in place.locator(".role-legend").all():
                box = legend.bounding_box()
                assert svg["y"] - 3 <= box["y"]
                assert box["y"] + box["height"] <= svg["y"] + svg["height"] + 3
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 24, 31)"
    assert dark == (scheme == "dark")


@pytest.mark.filterwarnings("ignore:budget=")
def test_the_slider_shows_what_fitting_gives(opened, reported):
    page, budgets = opened(reported.path), reported.summary["budgets"]
    for step in (0, budgets["enough"], len(budgets["budget"]) - 2):
        page.locator("#slider").fill(str(step))
        budget = budgets["budget"][step]
        book = vf.fit(reported.counts, budget)
        judged = book.evaluate(visits(2000, seed=1))
        assert page.locator("#slider-budget").inner_text() == f"{budget:,} ids"
        found = values(page, "#steps tr.now td")
        expected = [budget, book.size, book.information, book.information / book.total]
        expected += [book.gain, judged.gain]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
        rows = page.locator("#step-columns tbody tr")
        assert rows.count() == 3
        for i, (name, column) in enumerate(book.columns.items()):
            found = rows.nth(i).locator("td").evaluate_all("cells => cells.map((c) => Number(c.dataset.value))")
            figures = [column.information, column.gain, judged[name].gain]
            assert found[:5] == pytest.approx([column.size, column.n_dedicated, *figures], rel=1e-6, abs=1e-9)
        assert f"--budget {budget} " in page.locator("#command").inner_text()


def test_half_and_double_are_a_step_away(opened, reported):
    page, budgets = opened(reported.path), reported.summary["budgets"]
    chosen = budgets["chosen"]
    assert cells(page, "#steps tbody th") == ["half", "this", "double"]
    half = budgets["half"][chosen]
    half_book = vf.fit(reported.counts, budgets["budget"][half])
    found = values(page, "#steps tbody tr:first-child td")
    assert found[:3] == pytest.approx([half_book.budget, half_book.size, half_book.information])
    page.get_by_role("button", name="half", exact=True).click()
    assert page.locator("#slider").input_value() == str(half)
    page.get_by_role("button", name="double", exact=True).click()
    page.get_by_role("button", name="enough").click()
    assert page.locator("#slider").input_value() == str(budgets["enough"])
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    assert page.locator("#go-half").is_disabled()
    assert "doubling" in page.locator("#advice").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#slider-budget").inner_text() == f"{budgets['budget'][1]:,} ids"


def test_tables_are_sorted_by_a_click_or_a_key(opened, reported):
    page = opened(reported.path)
    head = page.locator("#column-table thead").get_by_role("button", name="ids", exact=True)
    sizes = [column["size"] for column in reported.summary["columns"]]
    head.click()
    assert values(page, "#column-table tbody td:nth-child(5)") == sorted(sizes, reverse=True)
    assert page.locator("#column-table th[aria-sort=descending]").count() == 1
    head.focus()
    page.keyboard.press("Enter")
    assert values(page, "#column-table tbody td:nth-child(5)") == sorted(sizes)
    page.locator("#column-table thead").get_by_role("button", name="column", exact=True).click()
    names = cells(page, "#column-table tbody th")
    assert names == sorted(names, key=str.lower)
    page.locator("#step-columns thead").get_by_role("button", name="train MI", exact=True).click()
    page.locator("#slider").fill("3")
    nats = values(page, "#step-columns tbody td:nth-child(4)")
    assert nats == sorted(nats, reverse=True)


def test_a_column_is_picked_and_a_value_found(opened, reported):
    page, ids = opened(reported.path), reported.summary["ids"]
    page.locator("#pick").select_option("1")
    column = reported.book.columns["user"]
    assert page.locator("#strip-title").inner_text().startswith(f"user: {column.size} ids")
    assert page.locator("#plot-strip path").count() >= column.size
    for value in ("u1", "u2"):
        page.locator("#find").fill(value)
        id = reported.book.ids("user", [value])[0]
        assert cells(page, "#found li button")[0].startswith(f"{value}: id {id}, ")
        facts = page.locator("#id-facts").inner_text().split("\n")
        assert facts[facts.index("Id") + 1] == str(id)
        assert facts[facts.index("Value") + 1] == value
    page.locator("#find").fill("nobody")
    assert f"it gets the id {column.other}" in cells(page, "#found li")[-1]
    page.locator("#find").fill("")
    page.locator("#segment").focus()
    page.keyboard.press("Home")
    facts = page.locator("#id-facts").inner_text()
    first = ids[1]["segments"]
    assert f"{100 * first['rate'][0]:.2f} %" in facts
    assert f"{first['rows'][0]:,.0f} (" in facts
    page.locator("#segment-details summary").click()
    assert values(page, "#segments tbody td:nth-child(3)") == first["rows"]
    page.locator("#calibrate").select_option("1")
    bins = reported.summary["trust"]["columns"][1]["calibration"]
    assert values(page, "#bins tbody td:nth-child(1)") == pytest.approx(bins["rate_at_fit"])


def test_values_are_found_whatever_their_kind(opened, tmp_path):
    n_rows, prefix = 600, "https://example.org/a/rather/long/path/that/many/pages/have/in/common/"
    pages = [f"{prefix}{i % 7}" for i in range(n_rows)]
    rows = pa.table(
        {
            "page": pages,
            "twin": [f"{'x' * 60}{i % 5}{'y' * 60}" for i in range(n_rows)],
            "flag": [i % 3 == 0 for i in range(n_rows)],
            "share": [float(i % 4) for i in range(n_rows)],
            "text": [["", " lead", "(missing)", None][i % 4] for i in range(n_rows)],
            "label": [int(i % 5 == 0 or i % 7 == 1) for i in range(n_rows)],
        }
    )
    counts = vf.count(rows, "label", ["page", "twin", "flag", "share", "text"])
    book = vf.fit(counts, "auto")
    book.report(tmp_path / "kinds.html", counts=counts, steps=5)
    page = opened(tmp_path / "kinds.html")
    assert "--budget auto " in page.locator("#command").inner_text()
    said = {
        ("page", prefix + "3"): prefix + "3",
        ("flag", "true"): True,
        ("share", "1"): 1.0,
        ("text", " lead"): " lead",
    }
    for (column, typed), value in said.items():
        page.locator("#pick").select_option(column)
        page.locator("#find").fill(typed)
        assert f"id {book.ids(column, [value])[0]}, " in cells(page, "#found li")[0]
        assert not [text for text in cells(page, "#found li") if "not in the codebook" in text]
    page.locator("#pick").select_option("page")
    page.locator("#find").fill(prefix + "nosuchpage")
    assert "This value is not in the codebook" in cells(page, "#found li")[-1]
    page.locator("#pick").select_option("twin")
    page.locator("#find").fill("x" * 60 + "2" + "y" * 60)
    assert "5 values look like this one" in cells(page, "#found li")[-1]
    page.locator("#pick").select_option("text")
    page.locator("#find").fill("(missing)")
    assert "2 values look like this one" in cells(page, "#found li")[-1]


def test_a_click_on_a_plot_picks(opened, reported):
    page = opened(reported.path)
    page.locator("#pick").select_option("1")
    last = page.locator("#plot-strip svg .mark-rect path").nth(reported.book.sizes["user"] - 1)
    last.click(force=True)
    assert page.locator("#segment").input_value() == page.locator("#segment").get_attribute("max")
    page.locator("#plot-budgets svg .mark-symbol path").first.click(force=True)
    assert page.locator("#slider").input_value() == "0"


def test_hostile_values_do_nothing(opened, reported):
    page = opened(reported.path)
    assert page.locator("#pick option").first.inner_text() == NAME
    page.locator("#pick").select_option("0")
    for value in HOSTILE:
        page.locator("#find").fill(value.replace("\n", " "))
    page.locator("#find").fill("x" * 10_000)
    page.locator("#segment-details summary").click()
    for i in range(int(page.locator("#segment").get_attribute("max")) + 1):
        page.locator("#segment").fill(str(i))
    page.locator("#plot-columns svg .mark-rect path").first.hover(force=True)
    page.wait_for_timeout(100)
    assert page.locator("main script, main img, main b[onmouseover]").count() == 0


def test_it_prints(opened, reported, tmp_path):
    page = opened(reported.path)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_counts_or_rows_it_says_how_to_get_more(opened, reported, tmp_path):
    reported.book.report(tmp_path / "small.html")
    page = opened(tmp_path / "small.html")
    assert page.locator("#slider").count() == 0
    hints = " ".join(cells(page, ".hint pre"))
    for words in ("vocabfold report BOOK --counts COUNTS", "--heldout NEW_DATA", "--compare compare.json"):
        assert words in hints


@pytest.mark.slow
def test_many_columns_and_ids_stay_usable(opened, tmp_path):
    rng = np.random.default_rng(0)
    names = {f"column {i}": rng.integers(0, 400, 3000).astype(str) for i in range(500)}
    rows = pa.table(names | {"click": rng.integers(0, 2, 3000)})
    counts = vf.count(rows, "click")
    book = vf.fit(counts, 160_000, aim="information", smoothing=0)
    book.report(tmp_path / "many.html", counts=counts, steps=8)
    assert (tmp_path / "many.html").stat().st_size < 12e6
    page = opened(tmp_path / "many.html")
    assert page.locator("#column-table tbody tr").count() == 500
    assert "The plots show the 40 columns" in page.locator("#columns").inner_text()
    page.locator("#pick").select_option("499")
    assert "are drawn as" in page.locator("#strip-note").inner_text()
    page.locator("#slider").fill("1")
    assert page.locator("#step-columns tbody tr").count() == 500

"""The page in headless Chromium at two widths: no error, no request, a selection that filters the table.

Skips visibly where there is no Chromium (tests/QUARANTINE.md).
"""

import time

import pytest
from chromium import Browser, find
from synthetic_study import DIMENSIONS, SAMPLES
from test_page import HOSTILE

import memcap.report

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium on this machine (tests/QUARANTINE.md)")

COUNTED = len(DIMENSIONS) * len(SAMPLES)
READY = "document.documentElement.dataset.ready === 'yes'"
COUNT = "document.getElementById('count').textContent"
PLOT = "(r => [r.x, r.y, r.width, r.height])(document.querySelector('#figure-phase .plot').getBoundingClientRect())"


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    hostile = frame.copy()
    hostile["error"] = [HOSTILE if e is not None and e == e else None for e in hostile["error"]]
    hostile["trace"] = [[float(i), 1.0, 0.5] for i in range(len(frame))]
    return memcap.report.write(hostile, tmp_path_factory.mktemp("browser") / "page.html", question=HOSTILE)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(params=["wide", "phone"])
def page(browser, path, request):
    phone = request.param == "phone"
    browser.look(390 if phone else 1280, 844 if phone else 900, touch=phone)
    browser.errors.clear()
    browser.requests.clear()
    browser.open(path, READY)
    browser.width = 390 if phone else 1280
    return browser


def clean(page, path):
    assert page.errors == []
    assert page.evaluate("report.errors") == []
    assert [r for r in page.requests if not r.startswith(("data:", "blob:"))] == [path.resolve().as_uri()]
    assert page.evaluate("window.hacked") is None


def test_all_figures_are_drawn_and_fit(page, path, tmp_path):
    assert (
        page.evaluate("[...document.querySelectorAll('figure')].filter(f => f.querySelector('.plot svg')).length") == 11
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= page.width
    wider = "[...document.querySelectorAll('.plot')].filter(p => p.scrollWidth > p.clientWidth + 1).length"
    assert page.evaluate(wider) == 0
    picture = page.screenshot(tmp_path / "page.png")
    assert picture.stat().st_size > 20_000
    clean(page, path)


def test_a_click_selects_a_cell_everywhere_and_shows_its_curves(page, path):
    page.evaluate("document.querySelector('#figure-phase').scrollIntoView({behavior: 'instant'})")
    cell = SAMPLES.index(4000) * len(DIMENSIONS) + DIMENSIONS.index(24)
    groups = "[...document.querySelectorAll('#figure-phase .plot g.mark-rect')]"
    rects = f"{groups}.find(g => g.children.length === {COUNTED})"
    middle = "(r => [r.x + r.width / 2, r.y + r.height / 2])"
    wanted = page.evaluate(f"{middle}({rects}.children[{cell}].getBoundingClientRect())")
    page.click(*wanted)
    page.wait("report.picked !== null")
    assert page.evaluate("report.picked") == {"dimension": [24], "samples": [4000]}
    assert page.evaluate(COUNT) == "3 of 213 cells with d = 24, N = 4,000"
    assert page.evaluate("document.querySelectorAll('#cells tbody tr').length") == 3
    page.wait("document.querySelectorAll('#minis svg').length === 3")  # along N, along d, the recorded curve
    other = page.evaluate("report.views.get('curves').signal('picked')")
    assert other == {"dimension": [24], "samples": [4000]}
    page.key("Escape")
    assert page.evaluate("report.picked") is None
    assert page.evaluate(COUNT) == "213 of 213 cells"
    assert page.evaluate("document.getElementById('dock').hidden")
    clean(page, path)


def test_arrow_keys_walk_over_the_plane_and_are_announced(page, path):
    page.evaluate("document.querySelector('#figure-phase .plot').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.key(key)
    assert page.evaluate("report.picked") == {"dimension": [16], "samples": [500]}
    assert page.evaluate("document.getElementById('live').textContent").startswith("d = 16, N = 500: 3 cells, recall ")
    page.evaluate("pick(null)")
    clean(page, path)


def test_the_filter_takes_words_comparisons_and_says_what_it_does_not_know(page, path):
    def type_in(text):
        page.evaluate(
            f"(i => {{ i.value = {text!r}; i.dispatchEvent(new Event('input')); }})(document.getElementById('filter'))"
        )
        return page.evaluate(COUNT)

    assert type_in("samples>=32000 d=48 done") == "6 of 213 cells"
    assert type_in("failed") == "4 of 213 cells"
    assert type_in("N<500 seed!=0") == "16 of 213 cells"
    assert type_in("dimensions=48").startswith("no column dimensions; ")
    page.evaluate("document.getElementById('clear').click()")
    assert page.evaluate(COUNT) == "213 of 213 cells"
    page.evaluate("document.querySelector('th[data-name=recall] button').click()")
    first = page.evaluate("report.cellRows.map(r => r.recall).filter(v => v !== null).sort((a, b) => a - b)[0]")
    assert (
        page.evaluate(
            "report.cellRows.find(r => r.cell === document.querySelector('#cells tbody tr').dataset.cell).recall"
        )
        == first
    )
    page.evaluate("document.querySelector('th[data-name=recall] button').click()")
    top = "document.querySelector('#cells tbody tr').dataset.cell"
    most = page.evaluate("Math.max(...report.cellRows.map(r => r.recall ?? -1))")
    assert page.evaluate(f"report.cellRows.find(r => r.cell === {top}).recall") == most, "failed cells come last"
    clean(page, path)


def test_a_drawn_rectangle_selects_several_cells(browser, path):
    browser.look(1280, 900)
    browser.open(path, READY)
    browser.evaluate("document.querySelector('#figure-phase').scrollIntoView({behavior: 'instant'})")
    x, y, width, height = browser.evaluate(PLOT)
    browser.drag((x + 0.3 * width, y + 0.3 * height), (x + 0.6 * width, y + 0.6 * height))
    browser.wait("report.picked !== null")
    picked = browser.evaluate("report.picked")
    assert len(picked["dimension"]) > 1
    assert len(picked["samples"]) > 1
    rows = browser.evaluate("report.cellRows.filter(r => matches(r, report.picked)).length")
    assert browser.evaluate(COUNT).startswith(f"{rows} of 213 cells with d = ")
    browser.evaluate("pick(null)")


def test_dark_follows_the_system_and_the_button(browser, path):
    browser.look(1280, 900, dark=True)
    browser.open(path, READY)
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"
    ink = "getComputedStyle(document.querySelector('#figure-curves svg text')).fill"
    dark = browser.evaluate(ink)
    browser.evaluate("document.getElementById('theme').click()")
    until = time.monotonic() + 20
    while browser.evaluate(ink) == dark:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert browser.evaluate("document.documentElement.dataset.theme") == "light"
    browser.look(1280, 900)


def test_a_figure_can_be_saved_from_the_page(browser, path):
    browser.open(path, READY)
    browser.evaluate(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href]); }"
    )
    for kind in ("svg", "png", "csv"):
        browser.evaluate(f"document.querySelector('#figure-phase [data-save={kind}]').click()")
    browser.wait("saved.length === 3")
    names = sorted(name for name, _ in browser.evaluate("saved"))
    assert names == ["phase-cells.csv", "phase.png", "phase.svg"]
    assert browser.evaluate("saved.find(s => s[0] === 'phase.png')[1].startsWith('data:image/png')")

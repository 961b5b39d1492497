"""The page of `coordwise reproduce`, opened in a browser."""

import csv
import re
import shutil
import xml.etree.ElementTree as ET
from base64 import b64decode
from urllib.parse import unquote, urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """The page in a window of a given width, with everything the browser asked for and complained about."""

    def __init__(self, browser, folder, width, height):
        self.requests, self.failed, self.complaints = [], [], []
        self.address = (folder / "index.html").as_uri()
        self.page = browser.new_page(viewport={"width": width, "height": height})
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.failed.append(request.url))
        self.page.goto(self.address)
        self.page.evaluate(
            "Promise.all([...document.images].map(image => { image.loading = 'eager'; return image.decode(); }))"
        )


@pytest.fixture(scope="module", params=WIDTHS)
def visit(request, browser, reproduction):
    assert reproduction.done.returncode == 0, reproduction.done.stderr
    found = Visit(browser, reproduction.folder, *WIDTHS[request.param])
    yield found
    found.page.close()


def rows_of(reproduction, name):
    with open(reproduction.folder / "data" / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_browser_has_no_complaint(visit):
    assert visit.complaints == []
    assert visit.failed == []


def test_the_page_is_one_file(visit):
    others = [url for url in visit.requests if url != visit.address and not url.startswith("data:")]
    assert others == []
    assert visit.address in visit.requests


def test_every_picture_is_drawn_and_described(visit):
    pictures = visit.page.evaluate(
        "[...document.images].map(i => ({done: i.complete, width: i.naturalWidth, alt: i.alt, source: i.src}))"
    )
    assert len(pictures) == 3 + 2 * (9 + 2 * 9 + 2 * 9 + 3 + 6 + 9 + 3) + 1
    assert all(picture["done"] and picture["width"] > 0 for picture in pictures)
    assert all(picture["alt"].strip() for picture in pictures)
    assert len({picture["alt"] for picture in pictures}) == len(pictures)
    assert len({picture["source"] for picture in pictures}) == len(pictures)


def test_panels_are_titled_as_they_are_described(visit):
    """The alternative text is "Figure 2, news20, λ = 0.001, against passes"; the picture has the title in it."""
    for alt, source in visit.page.evaluate("[...document.images].map(i => [i.alt, i.src])"):
        text = [element.text for element in ET.fromstring(b64decode(source.partition(",")[2])).iter() if element.text]
        title = alt.partition(", ")[2].rpartition(", against")[0]
        assert any(line.startswith(title) for line in text), alt


def test_nothing_sticks_out(visit):
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    wide, window = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    clipped = visit.page.evaluate(
        "[...document.images].filter(i => i.getBoundingClientRect().right > innerWidth + 1).map(i => i.alt)"
    )
    assert clipped == []


def test_details_open(visit):
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    details = visit.page.locator("details")
    assert details.count() == 11  # all but the first view of figures 2 to 7 and of Remark 1.1
    for k in range(details.count()):
        picture = details.nth(k).locator("img").first
        assert not picture.is_visible()
        details.nth(k).locator("summary").click()
        assert picture.is_visible()
        assert picture.bounding_box()["width"] > 200


def test_every_link_leads_somewhere(visit, reproduction):
    links = visit.page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    ids = visit.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in links if link.startswith("#")}
    assert anchors <= set(ids)
    assert {"claims", "speedups", "made", "table1", "fig7"} <= anchors
    local = {unquote(link) for link in links if not link.startswith("#") and not urlsplit(link).scheme}
    assert all(link.startswith(("figures/", "data/")) for link in local)
    assert [link for link in sorted(local) if not (reproduction.folder / link).is_file()] == []
    tables = {f"data/{path.name}" for path in (reproduction.folder / "data").glob("*.csv")}
    figures = {f"figures/{path.name}" for path in (reproduction.folder / "figures").iterdir()}
    assert tables | figures == local
    assert {link for link in links if urlsplit(link).scheme} == {"https://arxiv.org/abs/1512.09103"}


def test_the_claims_are_those_of_the_file(visit, reproduction):
    claims = rows_of(reproduction, "claims.csv")
    cells = [row.locator("td").all_inner_texts() for row in visit.page.locator("table.claims tbody tr").all()]
    assert len(cells) == len(claims)
    for shown, claim in zip(cells, claims, strict=True):
        assert shown[0] == claim["source"]
        assert shown[1].startswith(claim["text"])
        assert claim["test"] in " ".join(shown[1].split())
        assert shown[2] == claim["measured"]
        assert shown[3] == claim["verdict"]
    told = visit.page.locator("h2#claims + p").inner_text()
    for verdict in {claim["verdict"] for claim in claims}:
        count = sum(claim["verdict"] == verdict for claim in claims)
        assert re.search(rf"\b{count} claims?: {verdict}[;.]", told)


def test_the_speedups_are_those_of_the_file(visit, reproduction):
    rows = visit.page.locator("h2#speedups ~ div.scroll").first.locator("tbody tr")
    assert rows.locator("td:first-child").all_inner_texts() == [
        row["chart"] for row in rows_of(reproduction, "speedups.csv")
    ]


def test_the_speedups_tell_how_deep_they_were_read(visit, reproduction):
    table = visit.page.locator("h2#speedups ~ div.scroll").first
    shown = table.locator("tbody tr td:last-child").all_inner_texts()
    expected = [float(row["depth"]) for row in rows_of(reproduction, "speedups.csv")]
    plain = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    values = [float(text.replace("·10", "e").translate(plain)) for text in shown]  # 1.3·10⁻⁴
    assert values == pytest.approx(expected, rel=0.06)  # two digits


def test_table_1_on_the_page(visit):
    head = visit.page.locator("section:has(h2#table1) table thead th").all_inner_texts()
    assert head[1:3] == ["β = 0, strongly convex", "β = 0, not strongly convex"]


def test_table_3_on_the_page(visit):
    table = visit.page.locator("section:has(h2#table3) table tbody tr")
    printed = table.locator("td:nth-child(2)").all_inner_texts()
    computed = table.locator("td:nth-child(4)").all_inner_texts()
    assert printed == ["1", "1.0992", "1.2464", "1.4025", "1.6243", "1.7379"]
    assert computed == ["1.0000", *printed[1:]]


def test_stand_ins_are_told(visit):
    notice = visit.page.locator(".notice").first
    assert notice.is_visible()
    text = notice.inner_text()
    assert text.startswith("Not the paper's data.")
    assert all(f"{name}: generated stand-in" in text for name in ("news20", "w8a", "covtype"))
    assert "A quick look: 2 seeds" in visit.page.locator(".notice").nth(1).inner_text()


def test_nothing_is_left_to_fill_in(visit):
    text = visit.page.locator("body").inner_text()
    assert not re.search(r"\{\{|\}\}|\{%|\bNone\b|\bnan\b|undefined|float64", text)

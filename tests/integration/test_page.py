"""The pages in a real browser, on pipelines that really ran: every page, every state, any key, no request elsewhere."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from playwright.sync_api import expect
from support import page_pipelines
from support.browser import OF_ITS_OWN, Browser, browser
from support.http_asking import asking
from support.page_pipelines import KEYS, SCRIPT, served

from sfm_stream.answers.answer import answer
from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.question import parse_question
from sfm_stream.answers.top_keys import top_keys
from sfm_stream.config.tables import ServeTable
from sfm_stream.serve.app import make_app
from sfm_stream.serve.pages.key_display import address
from sfm_stream.serve.pages.number_text import written
from sfm_stream.serve.served import ServedPipeline, ServedProgress


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory) -> dict[str, ServedPipeline]:
    """Every pipeline by its id, and one whose cache is being built."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        config.pipeline.id: served(config)
        for make in ("flights", "visits", "noise", "full", "hostile")
        for config in [getattr(page_pipelines, make)(folder)]
    }
    made["building"] = replace(
        made["visits"], progress=lambda: ServedProgress(False, 12_345, 50_000, "one broker is away")
    )
    return made


@pytest.fixture(scope="module")
def client(pipelines) -> Iterator[httpx.Client]:
    with asking(make_app(pipelines, ServeTable())) as client:
        yield client


@pytest.fixture(scope="module")
def chromium(client) -> Iterator[Browser]:
    with browser(str(client.base_url).rstrip("/")) as started:
        yield started


ACTING = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that no page may hold as they are."""
FLIGHTS = "/p/flights-by-carrier"
PAGES = {
    "/": ["Pipelines", "flights-by-carrier", "12,345 of 50,000 records read"],
    FLIGHTS: ["Thu 31 Jan 2013", "Largest keys", "UA", "16 of 16 published keys", "January 2013", "Fri 1 Feb 2013"],
    f"{FLIGHTS}?by=month": ["January 2013", "Show", "may be none"],
    f"{FLIGHTS}/keys": ["Keys", "9E", "YV"],
    f"{FLIGHTS}/keys?search=zz": ["No published key has this text in it"],
    f"{FLIGHTS}/key?key=AA": ["AA", "Fri 4 Jan 2013 to Thu 31 Jan 2013", "28 days", "one release", "America/New_York"],
    f"{FLIGHTS}/key?key=HA&by=hour": ["168 hours", "may be none", "at most"],
    f"{FLIGHTS}/key?key=AA&by=month": ["January 2013", "one release"],
    f"{FLIGHTS}/key?key=XX": ["Nothing to show", "there are others, such as"],
    f"{FLIGHTS}/compare": ["Two keys in one span", "Compare"],
    f"{FLIGHTS}/compare?key=AA&other_key=UA&last=1mo": ["Both", "Only AA", "Only UA", "Either", "January 2013"],
    f"{FLIGHTS}/compare?key=AA&from=2013-01-07&to=2013-01-08&other_from=2013-01-08&other_to=2013-01-09": [
        "Mon 7 Jan 2013", "Tue 8 Jan 2013", "Only Mon 7 Jan 2013"
    ],
    f"{FLIGHTS}/compare?key=AA&other_key=AA&last=1d": ["Nothing is said of what they have in common", "the same noise"],
    f"{FLIGHTS}/worth": ["privacy statement", "differentially private", "hour", "Known to 20 % from", "744", "186"],
    "/p/visits": ["Keys that were withheld in this span have no rank", "still open"],
    "/p/visits/key?key=/small&by=hour": ["withheld or none", "This key was not selected here"],
    "/p/visits/key?key=/small&by=day": ["lower bound", "still open", "no upper limit", "Sun 29 Mar 2026 (23 hours)"],
    "/p/visits/key?key=/large&by=hour&from=2026-03-27&to=2026-04-01": ["before counting", "not decided yet"],
    "/p/visits/worth": ["Keys: selected", "day, merged from 24"],
    "/p/noise/key?key=/&by=hour": ["nothing known", "not known", "any number fits"],
    "/p/noise": ["not known"],
    "/p/full/key?key=/&by=hour": ["sketch full", "at least", "no upper limit"],
    "/p/full": ["sketch full"],
    "/p/hostile": ["Show more"],
}  # fmt: skip
"""Addresses, and words that stand on the page."""


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_what_it_is_and_can_be_read_by_all(chromium, path):
    """Wide and light first, then 360 pixels and dark."""
    with chromium.page() as watched:
        page = watched.open(path)
        for width, scheme in ((1200, "light"), (360, "dark")):
            watched.looks(width, scheme)
            words = re.sub(r"\s+", " ", page.inner_text("body"))
            assert [each for each in PAGES[path] if each not in words] == [], words[:3000]
            watched.is_accessible()
            watched.does_not_scroll_sideways()
            assert page.locator(".chart:visible").count() == (1 if page.locator(".chart").count() else 0)


PROBLEMS = {
    "/p/nobody": (404, "There is no such pipeline"),
    "/p/<b>x": (404, "'<b>x'"),
    f"{FLIGHTS}/key?key=AA&from=yesterday": (400, "From: 'yesterday' is not a time"),
    f"{FLIGHTS}/key?key=AA&from=2013-01-08T06:00&by=day": (400, 'Ask for From "2013-01-08 00:00"'),
    f"{FLIGHTS}/key?key=AA&by=year": (400, "By: no 'year' here: hour, day, week, month"),
    f"{FLIGHTS}/key?key=AA&by=hour&from=1970-01-02&to=2100-01-01": (400, "ask for a shorter time"),
    "/p/visits/key?key=/large&by=hour&from=2026-03-29T02:30": (400, "2026-03-29T01:30:00+01:00"),
    "/p/building": (503, "12,345 of 50,000 records are in the cache"),
    "/p/building/worth": (503, "one broker is away"),
}
"""Addresses, with the status and words of what answers them."""


@pytest.mark.parametrize("path", PROBLEMS)
def test_what_cannot_be_shown_says_why(chromium, path):
    status, words = PROBLEMS[path]
    with chromium.page() as watched:
        watched.looks(360, "dark")
        page = watched.open(path, status)
        assert words in page.inner_text("main")
        watched.is_accessible()
        watched.does_not_scroll_sideways()


def test_a_cache_that_is_built_shows_how_far_it_is_and_looks_again(client):
    page = client.get("/p/building")
    assert page.headers["retry-after"] == "2"
    assert '<meta http-equiv="refresh" content="2">' in page.text
    assert re.search(r'<progress [^>]*value="12345" max="50000">24 %</progress>', page.text)
    assert "progress" not in client.get("/p/visits").text


def test_one_pipeline_alone_is_shown_at_once(pipelines):
    with asking(make_app({"visits": pipelines["visits"]}, ServeTable())) as alone:
        assert alone.get("/").headers["location"] == "/p/visits"
    with asking(make_app({}, ServeTable())) as none:
        assert "None is served" in none.get("/").text


def test_numbers_are_those_of_the_answers(chromium, pipelines):
    """The table of a key and the ranking, cell by cell."""
    flights = pipelines["flights-by-carrier"]
    with flights.reader() as reader:
        question = parse_question(flights.config, "day", ["AA"], "2013-01-04", "2013-02-01")
        rows = list(answer(reader, flights.terms, question).rows)
        ranked = top_keys(reader, flights.terms, parse_question(flights.config, "range", last="1mo"), 16)
    with chromium.page() as watched:
        page = watched.open(f"{FLIGHTS}/key?key=AA")
        cells = page.locator("#rows tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].slice(1, 3).map(cell => cell.textContent))"
        )
        assert cells == [[said.value, said.interval] for said in (written(row.estimate) for row in rows)]
        page = watched.open(f"{FLIGHTS}?by=month")
        found = page.locator(".ranking tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => (cell.querySelector('b') || cell).textContent.trim()))"
        )
    assert found == [
        [
            f"{each.rank_low}\u2013 to {each.rank_high}" if each.tied else f"{each.rank_low}",
            key_text(each.row.key),
            written(each.row.estimate).value,
        ]
        for each in ranked
    ]


def test_any_key_has_a_page_where_it_is_text_and_nothing_else(chromium, client, pipelines):
    """From the list to the page of each key: its heading is the key, and no element or character of it acts."""
    config = pipelines["hostile"].config
    with chromium.page() as watched:
        watched.looks(360, "light")
        links = watched.open("/p/hostile/keys").locator(".keys a")
        shown = {key_text((key,)) for key in KEYS}
        assert set(links.evaluate_all("all => all.map(each => each.firstChild.title || each.textContent)")) == shown
        watched.does_not_scroll_sideways()
        assert watched.page.locator("img, script:not([src])").count() == 0
        targets = links.evaluate_all("all => all.map(each => each.getAttribute('href'))")
        assert len(targets) == len(set(targets)) == len(KEYS) == len(config.keys.effective)
        for target in targets[::5]:
            page = watched.open(target)
            assert page.text_content("h1").strip() in shown
            assert page.title() != "owned"
            assert page.locator("img, script:not([src])").count() == 0
            watched.does_not_scroll_sideways()
    for target in targets:
        text = client.get(target).text
        assert "Nothing to show" not in text
        assert SCRIPT not in text
        assert not ACTING.search(text)
        shown.remove(html.unescape(re.search(r'<h1><bdi class="key">(.*?)</bdi></h1>', text)[1]))
    assert shown == set()
    for key in KEYS[::4]:
        text = client.get(address("p", "hostile", "compare", key=key_text((key,)), other_key=SCRIPT, last="1h")).text
        assert "The second less the first" in text
        assert SCRIPT not in text
        assert not ACTING.search(text)


def test_links_to_the_api_lead_to_the_same_numbers(client):
    """As CSV: the rows of the table, and a row for each key of the ranking."""
    for path, rows in (
        (f"{FLIGHTS}/key?key=AA", 28),
        ("/p/visits/key?key=/small&by=day", 3),
        (f"{FLIGHTS}?by=month", 16),
    ):
        (link,) = re.findall(r'<a href="([^"]+)" download>CSV', client.get(path).text)
        got = client.get(html.unescape(link))
        assert got.headers["content-type"].startswith("text/csv"), got.text
        assert len(got.text.splitlines()) == 1 + rows
    for path in (f"{FLIGHTS}/key?key=AA&by=hour", f"{FLIGHTS}/compare?key=AA&other_key=UA&last=1mo"):
        (link,) = re.findall(r'<a href="([^"]+)">JSON', client.get(path).text)
        assert client.get(html.unescape(link)).status_code == 200


def test_it_all_works_without_a_script(chromium):
    """The picture is there, times are asked for by the form, and the other links and forms lead on."""
    with chromium.page(script=False) as watched:
        page = watched.open(f"{FLIGHTS}/key?key=AA")
        expect(page.locator(".chart.wide .mark")).to_have_count(28)
        expect(page.get_by_role("button", name="Zoom")).to_have_count(0)
        page.get_by_role("link", name="week", exact=True).click()
        expect(page.locator("#rows tbody tr")).to_have_count(5)
        page.get_by_role("link", name="hour", exact=True).click()
        page.get_by_label("From").fill("2013-01-16T06:00")
        page.get_by_label("to before").fill("2013-01-16T09:00")
        page.get_by_role("button", name="Show").last.click()
        expect(page.locator("#rows tbody th")).to_have_text(
            [f"Wed 16 Jan 2013 {hour:02}:00 to {hour + 1:02}:00" for hour in (6, 7, 8)]
        )
        page.get_by_label("Time").select_option("3d")
        page.get_by_role("button", name="Show").first.click()
        expect(page.locator("#rows tbody tr")).to_have_count(72)
        page.get_by_role("link", name="Earlier").click()
        expect(page.locator("h2#trend")).to_have_text("Sat 26 Jan 2013 to Mon 28 Jan 2013, by hour")
        page.get_by_role("link", name="Compare").last.click()
        page.get_by_label("Key").last.fill("UA")
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("row", name="Both")).to_be_visible()
        page.get_by_role("link", name="Keys").click()
        page.get_by_label("Text in it").fill("u")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".keys a")).to_have_text(["UA", "US"])


def test_a_trend_can_be_zoomed_by_the_keyboard(chromium):
    """uPlot takes the place of the picture, and gives it back; what is chosen is told with the words of the table."""
    for width in (1200, 360):
        with chromium.page() as watched:
            watched.looks(width, "dark")
            page = watched.open(f"{FLIGHTS}/key?key=HA&by=hour")
            page.get_by_role("button", name="Zoom", exact=True).press("Enter")
            canvas = page.locator(".uplot canvas")
            expect(canvas).to_be_visible()
            expect(canvas).to_have_attribute("aria-label", re.compile("Distinct tailnum by hour, zoomed"))
            expect(page.locator(".chart:visible")).to_have_count(0)
            watched.does_not_scroll_sideways()
            page.get_by_role("button", name="All").press("Enter")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            whole = canvas.screenshot()
            page.get_by_role("button", name="Zoom in").press("Enter")
            page.get_by_role("button", name="Earlier").press("Space")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            assert canvas.screenshot() != whole, "nothing moved"
            page.get_by_role("button", name="All").press("Enter")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            page.mouse.move(0, 0)
            assert canvas.screenshot() == whole
            page.locator(".u-over").hover(position={"x": 120, "y": 60})
            expect(page.locator(".u-legend .u-value").first).to_have_text(re.compile(r"Jan 2013 \d\d:00 to \d\d:00"))
            watched.is_accessible()
            page.get_by_role("button", name="Back to the picture").press("Enter")
            expect(page.locator(".chart:visible")).to_have_count(1)


def test_the_keyboard_leads_from_the_overview_to_a_key(chromium):
    with chromium.page() as watched:
        page = watched.open(FLIGHTS)
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        expect(skip).to_have_text("Skip to the content")
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        for _ in range(40):
            page.keyboard.press("Tab")
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", page.evaluate("() => document.activeElement.outerHTML")
            if page.evaluate("() => document.activeElement.closest('.ranking') !== null"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**/key?*")
        expect(page.locator("h1")).to_have_text("UA")


def test_screen_readers_are_told_what_the_picture_shows(chromium):
    with chromium.page() as watched:
        page = watched.open("/p/visits/key?key=/small&by=day")
        picture = page.get_by_role("img", name="Distinct user by day")
        expect(picture).to_have_count(1)
        expect(picture).to_have_accessible_description("3 days; 3 lower bound; 1 still open.")
        expect(page.get_by_role("group", name="The same as a table")).to_be_visible()
        expect(page.get_by_role("rowheader", name="Sun 29 Mar 2026 (23 hours)")).to_be_visible()
        expect(page.get_by_role("navigation", name="By")).to_be_visible()


SIGNS = {
    "/p/visits/key?key=/small&by=day": {"lower": 3, "open": 1},
    "/p/full/key?key=/&by=hour": {"saturated": 5},
    "/p/noise/key?key=/&by=hour": {"unknown": 1},
    f"{FLIGHTS}/key?key=OO&by=day": {"empty": 27},
}
"""Pages, and how often the picture has the sign of a state."""
OF_STATE = {
    "lower": ".mark[d*=L]",
    "saturated": ".mark[d*=h8]",
    "empty": ".mark.hollow",
    "open": ".ring",
    "unknown": ".column[fill$='unknown)']",
}


@pytest.mark.parametrize("path", SIGNS)
def test_states_differ_in_shape_and_not_only_in_colour(client, chromium, path):
    with chromium.page() as watched:
        page = watched.open(path)
        found = {name: page.locator(f".chart.wide {sign}").count() for name, sign in OF_STATE.items()}
        wanted = dict.fromkeys(OF_STATE, 0) | SIGNS[path]
        assert {name: min(count, wanted[name]) if name == "empty" else count for name, count in found.items()} == wanted


def test_static_files_are_kept_by_their_version_and_no_other_is_given(client):
    page = client.get(FLIGHTS).text
    (style,) = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
    got = client.get(style)
    assert got.status_code == 200
    assert got.headers["content-type"].startswith("text/css")
    assert "immutable" in got.headers["cache-control"]
    for name in ("../router.py", "..%2frouter.py", "uplot.LICENSE", "%2e%2e/pages/router.py"):
        assert client.get(f"/static/{name}").status_code == 404


WRONG = """<html lang="en"><title>x</title><body><header></header><main><h1>A</h1><h3>left one out</h3>
<p id="a">a</p><p id="a" style="color: #999; background: #fff">faint</p><input name="nameless"><svg role="img"></svg>
<div style="width: 3000px">wide</div></main><footer></footer></body></html>"""


def shown_once(chromium: Browser, content: str) -> None:
    with chromium.page() as watched:
        watched.page.set_content(content)


def test_what_is_asked_of_every_page_is_seen_where_it_is_wrong(chromium):
    with chromium.page() as watched:
        watched.page.set_content(WRONG)
        found = {name: watched.check(name) for name in ("outline", "unlabelled", "twice", "faint", "landmarks")}
        assert found["outline"] == [1, 3]
        assert len(found["unlabelled"]) == 2
        assert found["twice"] == ["a"]
        assert [words for words, _ in found["faint"]] == ["faint"]
        for check in (watched.is_accessible, watched.does_not_scroll_sideways):
            with pytest.raises(AssertionError):
                check()
    for content, complaint in (
        ('<img src="http://elsewhere.invalid/x.png">', "elsewhere"),
        ("<script>x.y</script>", "x is"),
    ):
        with pytest.raises(AssertionError, match=complaint):
            shown_once(chromium, content)
    for wrong in (
        '<p style="color: red">',
        "<script>1</script>",
        '<a href="https://elsewhere.invalid/">',
        "<b onclick=1>",
    ):
        assert OF_ITS_OWN.search(wrong), wrong

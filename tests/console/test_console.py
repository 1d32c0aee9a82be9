"""The console in a real browser, at a node that says whatever a test wants it to."""

from __future__ import annotations

import contextlib
import copy
import re
import time
from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect

from tests.console.browser import Console, console
from tests.console.fake_node import FakeNode, worker
from tests.helpers import eventually
from workers.agent.admin import console as source

NOTHING = "\u2013"
HOSTILE = "<img src=x onerror=\"window.pwned='yes'\"><script>window.pwned='yes'</script>&amp;\u202e\u200b\x9b{{7*7}}"
SHOWN = HOSTILE.translate(dict.fromkeys(map(ord, "\u202e\u200b\x9b"), "\ufffd"))


def rows(shown: Console, table: str) -> list[list[str]]:
    """The texts of a table's rows, cell by cell."""
    found = shown.page.locator(f"#{table} tbody tr:not(.empty)")
    return [found.nth(at).locator("th, td").all_text_contents() for at in range(found.count())]


def test_everything_that_the_node_says_is_shown(browser: Browser) -> None:
    node = FakeNode(workers=2, members=3)
    node.topic("orders", senders=1, receivers=7, takers=2, subscribers=4, since=41.5, rate=1234.5, worker=1)
    node.client(name="billing", waiting=12, subscriptions=3, unread_bytes=1_500_000, choked=False)
    node.close("half-frame", peer="10.9.8.7:65", text="the rest did not come")
    node.state["restarts"]["signal"] = 3
    with node.serving() as url, console(browser, url) as shown:
        shown.sees("#headline", "All well")
        shown.sees("#name", "red")
        shown.sees("#facts", "address10.0.0.1:3443version0.1.0pid4711up3 h 12 minstateready")
        shown.sees("#calls", "51.2 k")
        shown.sees("#met", "50.9 k")
        shown.sees("#p99", "84 µs")
        shown.sees("#p50", "12 µs")
        shown.sees("#waiting", "171")
        shown.sees("#waiting-kinds", "send 3 · recv 120 · take 40 · subscr. 8")
        shown.sees("#topics-note", "1 topic")
        shown.sees("#connections-note", "1 connection")
        shown.sees("#share", re.compile(r"\d+ %"))
        assert [row[0] for row in rows(shown, "members")] == ["red", "green", "blue"]
        assert [row[:5] for row in rows(shown, "workers")] == [
            ["worker-0", "serving", "4720", "61 %", "25.6 k"],
            ["worker-1", "serving", "4721", "56 %", "25.5 k"],
            ["supervisor", "", "4711", "0.1 %", NOTHING],
            ["agent", "", "4712", "1.3 %", NOTHING],
        ]
        assert rows(shown, "topics") == [["orders", "41 s", "1", "7", "2", "4", "1,235", "25 %", "1"]]
        assert rows(shown, "clients") == [
            ["billing · 10.0.0.7:40000", "", "1.43 MiB", "12", "3", "1 h 1 min", "junction", "0"]
        ]
        assert [row[1:4] for row in rows(shown, "closed")] == [["half-frame", "10.9.8.7:65", "the rest did not come"]]
        assert "signal3" in shown.texts("#counts")[0]


def test_it_is_one_request_and_names_no_other_server() -> None:
    body, policy = source.page()
    text = body.decode()
    assert re.findall(r"""(?:src|href)=["'](?!data:)([^"']*)""", text) == ["api/state", "metrics"]
    assert set(re.findall(r"https?://[^'\"\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "unsafe" not in policy
    assert "innerHTML" not in text


def test_numbers_change_while_one_looks_and_nothing_moves(browser: Browser) -> None:
    node = FakeNode(members=3)
    for number in range(30):
        node.topic(f"topic-{number}")
    places = "() => [...document.querySelectorAll('.panel')].map(each => JSON.stringify(each.getBoundingClientRect()))"
    with node.serving() as url, console(browser, url) as shown:
        shown.sees("#topics-note", "30 topics")
        shown.sees("#ring-version", re.compile("3 nodes"))
        shown.page.evaluate("window.same = true")
        before = shown.page.evaluate(places)
        line = shown.page.locator("#calls-chart .one").get_attribute("d")
        for calls, p99, waiting in ((7.0, 3.2e-6, 0), (123_456_789.0, 61.5, 9_876_543), (999.6, 0.0999, 12)):
            node.state["rates"]["calls"] = calls
            node.state["latency"]["hand_off"]["p99"] = p99
            node.state["waiting"]["recv"] = waiting
            for each in node.state["workers"]:
                each.update(calls=calls / 4, beat_age=p99 / 100, rss=waiting * 1000, unread_bytes=waiting)
            shown.sees("#calls", {7.0: "7", 123_456_789.0: "123 M", 999.6: "1,000"}[calls])
            assert shown.page.evaluate(places) == before
        assert shown.page.locator("#calls-chart .one").get_attribute("d") != line
        assert shown.page.evaluate("window.same")


def hangs(node: FakeNode) -> None:
    node.state["workers"][2] = worker(2, beat_age=7.3)


def drains(node: FakeNode) -> None:
    node.state["node"].update(draining=True, ready=False)


def lacks_a_worker(node: FakeNode) -> None:
    node.state["workers"][3].update(state="starting", serving=False)


def chokes(node: FakeNode) -> None:
    node.state["workers"][1].update(choked=3, unread_bytes=3 << 20)


def found_a_stranger(node: FakeNode) -> None:
    node.state["ring"]["unproven"] = ["10.0.0.9:3443"]
    node.ring["unproven"] = [{"address": "10.0.0.9:3443", "reason": "its proof is wrong"}]


def is_not_ready(node: FakeNode) -> None:
    node.state["node"]["ready"] = False


def sees_trouble(shown: Console, headline: str, level: str, detail: str) -> None:
    shown.sees("#headline", headline)
    shown.sees("#troubles", re.compile(re.escape(detail)))
    expect(shown.page.locator("#status")).to_have_attribute("data-level", level)
    expect(shown.page).to_have_title("(1) red \u2013 skywalker")


def test_what_is_wrong_is_the_first_that_one_reads(browser: Browser) -> None:
    """One after the other, and then two at once, of which the worst comes first, and a reload, which is no trouble."""
    node = FakeNode()
    state, ring = copy.deepcopy((node.state, node.ring))
    with node.serving() as url, console(browser, url) as shown:
        for trouble, level, headline, detail in (
            (hangs, "bad", "Worker 2 hangs", "has not turned for 7.3 s; pid 4722"),
            (drains, "warn", "Draining", "163 calls still wait"),
            (lacks_a_worker, "warn", "1 worker does not serve", "3 of 4"),
            (chokes, "warn", "3 clients read too slowly", "3.00 MiB"),
            (found_a_stranger, "warn", "1 stranger where nodes of the cluster are looked for", "10.0.0.9:3443"),
            (is_not_ready, "warn", "Not ready", "not announced"),
        ):
            shown.sees("#headline", "All well")
            trouble(node)
            sees_trouble(shown, headline, level, detail)
            node.state, node.ring = {**copy.deepcopy(state), "time": node.state["time"]}, copy.deepcopy(ring)
        chokes(node)
        hangs(node)
        shown.sees("#headline", "Worker 2 hangs, and 1 more")
        assert "3 clients read too slowly" in shown.texts("#troubles")[0]
        expect(shown.page.locator("#workers tr.bad th")).to_have_text("worker-2")
        expect(shown.page.locator("#workers tr.warn th")).to_have_text("worker-1")
        node.state = {**copy.deepcopy(state), "time": node.state["time"]}
        node.state["restarts"]["reload"] += 4
        shown.sees("#counts", re.compile("reload4"))
        shown.sees("#headline", "All well")


def test_it_says_that_the_node_is_gone_and_comes_back_by_itself(browser: Browser) -> None:
    node = FakeNode()
    with contextlib.ExitStack() as life:
        url = life.enter_context(node.serving())
        with console(browser, url) as shown:
            shown.excused = True
            shown.page.evaluate("window.same = true")
            life.close()
            shown.sees("#headline", "The node does not answer")
            shown.sees("#troubles", re.compile(r"since \d\d:\d\d:\d\d"))
            expect(shown.page).to_have_title("(!) skywalker")
            node.state["rates"]["calls"] = 4321.0
            life.enter_context(node.serving(port=urlsplit(url).port or 0))
            shown.sees("#headline", "All well")
            node.silent = True  # it takes connections, which is not enough
            shown.sees("#headline", "The node does not answer")
            node.silent = False
            shown.sees("#headline", "All well")
            shown.sees("#calls", "4,321")
            assert shown.page.evaluate("window.same"), "it was loaded anew"


def test_what_others_named_is_text_wherever_it_is_shown(browser: Browser) -> None:
    node = FakeNode(members=2)
    node.topic(HOSTILE)
    node.topic("__proto__")
    node.client(name=HOSTILE, peer=HOSTILE, door=HOSTILE)
    node.close(HOSTILE, peer=HOSTILE, text=HOSTILE)
    node.ring["members"][1]["name"] = HOSTILE
    node.state["node"]["name"] = node.state["node"]["version"] = HOSTILE
    node.state["errors"][HOSTILE] = 1
    node.ring["unproven"] = [{"address": "10.0.0.9:3443", "reason": HOSTILE}]
    with node.serving() as url, console(browser, url) as shown:
        shown.sees("#topics-note", "2 topics")
        assert [row[0] for row in rows(shown, "topics")] == [SHOWN, "__proto__"]
        assert rows(shown, "clients")[0][0] == f"{SHOWN} · {SHOWN}"
        assert rows(shown, "closed")[0][1:4] == [SHOWN] * 3
        shown.sees("#name", SHOWN)
        eventually(lambda: SHOWN in [row[0] for row in rows(shown, "members")])
        assert SHOWN in shown.texts("#counts")[0]
        assert shown.texts("#unproven li") == [f"10.0.0.9:3443: {SHOWN}"]
        assert shown.page.locator("img").count() == 0
        assert shown.page.evaluate("window.pwned") is None


def test_it_fits_any_screen_with_names_of_any_length(browser: Browser) -> None:
    node = FakeNode(members=8)
    node.state["node"]["name"] = "n" * 300
    for number in range(100):
        node.topic(f"{number}/" + "a/very/long/name/" * 200, receivers=1_234_567 * number)
        node.client(name="c" * 4000, unread_bytes=10**number)
        node.close("slow-subscriber", text="t" * 4000)
    hangs(node)
    with node.serving() as url, console(browser, url) as shown:
        shown.sees("#topics-note", "100 topics")
        for width in (1280, 1920, 820, 390):
            shown.page.set_viewport_size({"width": width, "height": 800})
            assert shown.page.evaluate("document.documentElement.scrollWidth") == width
            status = shown.page.locator("#status").bounding_box()
            assert status is not None
            assert status["y"] + status["height"] < 400, "what is wrong must be seen at once"


def test_light_and_dark_follow_the_system_until_told_otherwise(browser: Browser) -> None:
    def is_dark() -> bool:
        return sum(shown.ground()) < 3 * 128

    with FakeNode().serving() as url, console(browser, url, color_scheme="dark") as shown:
        assert is_dark()
        shown.page.emulate_media(color_scheme="light")
        assert not is_dark()
        button = shown.page.get_by_role("button", name=re.compile("auto|light|dark"))
        button.click()
        button.click()
        assert is_dark()
        shown.open()
        assert is_dark(), "it is remembered"


def test_a_hidden_page_asks_nothing_and_goes_on_when_seen(browser: Browser) -> None:
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    node = FakeNode()
    node.period_s = 0.05
    with node.serving() as url, console(browser, url) as shown:
        eventually(lambda: node.listeners == 1)
        shown.sees("#ring-version", re.compile("1 node"))
        shown.page.evaluate(hide, True)
        eventually(lambda: node.listeners == 0)
        asked = len(node.paths)
        until = time.monotonic() + 2.5  # longer than between two questions
        while time.monotonic() < until:
            shown.page.wait_for_timeout(100)
            assert node.paths[asked:] == []
            assert node.listeners == 0
        node.state["rates"]["calls"] = 77.0
        shown.page.evaluate(hide, False)
        shown.sees("#calls", "77")
        eventually(lambda: sum("/api/topics" in path for path in node.paths[asked:]) == 1)


def test_hours_of_events_leave_nothing_behind(browser: Browser) -> None:
    node = FakeNode(members=3)
    node.period_s = 0.03
    with node.serving() as url, console(browser, url) as shown:
        session = shown.page.context.new_cdp_session(shown.page)

        def used() -> tuple[int, int]:
            session.send("HeapProfiler.collectGarbage")
            nodes = session.send("Memory.getDOMCounters")["nodes"]
            return nodes, session.send("Runtime.getHeapUsage")["usedSize"]

        def look(times: int) -> None:
            for number in range(times):
                node.topics["topics"] = [{**row, "topic": f"{number}-{at}"} for at, row in enumerate(some)]
                shown.page.evaluate("document.getElementById('topics-order').dispatchEvent(new Event('change'))")
                shown.page.wait_for_timeout(20)

        node.topic("a")
        some = node.topics["topics"] * 50
        look(5)
        nodes, heap = used()
        look(25)
        more_nodes, more_heap = used()
        # Rows of before may wait to be forgotten: each time it is 50 of them, with some 20 nodes.
        assert more_nodes <= nodes + 5_000
        assert more_heap <= heap + 3_000_000

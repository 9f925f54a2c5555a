"""The workbench page, in Chromium against a running server."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from workbench import browse, program, serving

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "workbench.png"
WIDE = {"width": 1400, "height": 900}
PHONE = {"width": 360, "height": 780}
WAIT_MS = 180_000
"""No limit of speed: a machine that runs all tests at once is slow."""

expect.set_options(timeout=WAIT_MS)

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = browse(playwright, chromium)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has opened the sampler of the tutorial on tools."""
    folder = tmp_path_factory.mktemp("workbench")
    (folder / "sampler.c").write_text(program("sampler.c"))
    with serving(folder, "sampler.c", "--nic", "spin-100g") as (address, _):
        yield address


@pytest.fixture
def visit(browser: Browser) -> Iterator[Opener]:
    """Open a page. At the end, no request has left the server's address, and no script or rule has failed."""
    asked: list[str] = []
    said: list[str] = []

    def requested(request: Request) -> None:
        asked.append(request.url)

    def logged(message: ConsoleMessage) -> None:
        if message.type == "error":
            said.append(message.text)

    contexts = []

    def open_page(address: str, viewport: dict[str, int] = WIDE, dark: bool = False, motion: bool = True) -> Page:
        context = browser.new_context(
            viewport=viewport,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            reduced_motion="no-preference" if motion else "reduce",
            accept_downloads=True,
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("request", requested)
        page.on("console", logged)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    strangers = [url for url in asked if urlsplit(url).hostname not in {"127.0.0.1", None}]
    assert strangers == []
    expected = ("WebSocket", "ERR_CONNECTION", "status of 4")
    assert [text for text in said if not any(words in text for words in expected)] == []


def write(page: Page, text: str) -> None:
    """Replace the program in the editor, as a user pastes it."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def answer(page: Page) -> str:
    """The answer when the present run is complete. A change of an input may begin another run between two looks."""
    found = "running"
    while found in {"none", "running"}:
        expect(page.locator(".answer")).not_to_have_attribute("data-answer", re.compile("none|running"))
        expect(page.locator(".doing progress")).to_have_count(0)
        found = page.locator(".answer").get_attribute("data-answer") or ""
    return found


def run(page: Page) -> str:
    """Press Run, and return the answer."""
    page.keyboard.press("Control+Enter")
    return answer(page)


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def quiet(page: Page) -> None:
    """Stop runs on change."""
    page.get_by_label("Run on change").uncheck()


def capture(packets: int) -> bytes:
    """A capture of UDP frames, in pcap."""
    frame = bytes.fromhex("020000000002020000000001080045000020000040004011") + bytes(36)
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 0, at, len(frame), len(frame)) + frame for at in range(packets))


def drop(page: Page, target: str, name: str, data: bytes) -> None:
    """Drop a file on an element."""
    transfer = page.evaluate_handle(
        """([name, data]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], name));
            return transfer;
        }""",
        [name, base64.b64encode(data).decode()],
    )
    for event in ("dragover", "drop"):
        page.dispatch_event(target, event, {"dataTransfer": transfer})


def test_walks_the_tutorial_on_tools(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    write(page, program("sampler.c"))
    assert run(page) == "yes"
    expect(page.locator(".strip")).to_contain_text("handler cores")

    tab(page, "Findings")
    page.get_by_role("button", name="Check the program").click()
    expect(page.locator(".findings li").first).to_contain_text("race")
    page.locator(".findings .side button").first.click()
    expect(page.locator(".cm-activeLine")).to_contain_text("pool.packets = packets;")

    write(page, program("locked.c"))
    assert run(page) == "no"
    tab(page, "Verdict")
    expect(page.locator(".sentences")).to_contain_text("bottleneck: lock")
    tab(page, "Source")
    hottest = page.locator("tr.heat6")
    expect(hottest).to_contain_text("while (__atomic_load_n(&pool.serving")
    expect(page.get_by_role("heading", name="Locks")).to_be_visible()
    expect(page.locator(".heatgutter .heat6")).to_have_count(1)

    write(page, program("spread.c"))
    assert run(page) == "yes"
    tab(page, "Findings")
    page.get_by_role("button", name="Check the program").click()
    expect(page.locator(".sheet .tools")).to_contain_text("no findings")


def test_an_error_of_the_compiler_is_at_its_line(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    write(page, program("sampler.c").replace("pool.bytes = bytes;", "pool.bytes = byte;"))
    assert run(page) == "failed"
    expect(page.locator(".figures")).to_contain_text("byte")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    page.locator(".cm-lintRange-error").hover()
    expect(page.locator(".cm-tooltip")).to_contain_text("undeclared")


def test_a_changed_value_changes_the_answer(visit: Opener, address: str) -> None:
    page = visit(address)
    assert answer(page) == "yes"
    page.get_by_label("Find a value").fill("hpu.cores")
    page.get_by_label("hpu.cores", exact=True).fill("4")
    page.get_by_label("hpu.cores", exact=True).press("Enter")
    expect(page.locator(".answer")).to_have_attribute("data-answer", "no")
    expect(page.locator(".value.changed")).to_contain_text("Allowed: from 1 to")
    assert answer(page) == "no"
    expect(page.locator(".command code")).to_contain_text("--set hpu.cores=4")

    tab(page, "Compare")
    expect(page.locator(".compare")).to_contain_text("previous")
    expect(page.locator(".compare")).to_contain_text("✕ no")

    slider = page.get_by_label("Slider of hpu.cores")
    slider.focus()
    slider.press("End")
    expect(page.get_by_label("hpu.cores", exact=True)).to_have_value("256")
    page.get_by_role("button", name="Reset hpu.cores").click()
    expect(page.get_by_label("hpu.cores", exact=True)).to_have_value("16")
    page.get_by_label("hpu.cores", exact=True).press("ArrowDown")
    expect(page.get_by_label("hpu.cores", exact=True)).to_have_value("15")
    page.get_by_role("button", name="Reset all").click()
    # The answer of an earlier run may stand for a moment.
    expect(page.locator(".answer")).to_have_attribute("data-answer", "yes")


def test_a_wrong_value_is_named(visit: Opener, address: str) -> None:
    page = visit(address)
    assert answer(page) == "yes"
    page.get_by_label("Find a value").fill("hpu.cores")
    page.get_by_label("hpu.cores", exact=True).fill("many")
    page.get_by_label("hpu.cores", exact=True).press("Enter")
    expect(page.locator(".panel [role=alert]")).to_contain_text("hpu.cores")
    # The answer of the run before stands for a moment.
    expect(page.locator(".answer")).to_have_attribute("data-answer", "failed")


def test_traffic_by_form_and_by_expression(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    page.get_by_label("Protocol").select_option("tcp")
    page.get_by_label("Sizes").select_option("range")
    page.get_by_label("Frame sizes (B)").fill("64-256")
    page.get_by_label("Packets", exact=True).fill("2k")
    page.get_by_label("Rate", exact=True).select_option("Gbps")
    page.get_by_label("Rate (Gb/s)").fill("20")
    page.get_by_label("Arrivals").select_option("burst")
    page.get_by_label("Frames of a burst").fill("16")
    page.get_by_text("Flows and addresses").click()
    page.get_by_label("Source addresses").fill("10.0.0.0/16")
    page.get_by_label("Destination addresses").fill("10.1.0.1")
    page.get_by_label("Source ports").fill("1024-65535")
    page.get_by_label("Destination ports").fill("53")
    page.get_by_label("Flows", exact=True).fill("1k")
    page.get_by_label("Zipf exponent").fill("1.1")
    page.get_by_label("Full packet buffer").select_option("lossy")
    page.get_by_label("Seed").fill("7")
    assert run(page) == "yes"
    command = page.locator(".command code")
    expression = "tcp src=10.0.0.0/16 dst=10.1.0.1 sport=1024-65535 dport=53 flows=1k zipf=1.1 size=64-256 rate=20Gbps "
    expect(command).to_contain_text(expression + "arrivals=burst:16 packets=2k")
    expect(command).to_contain_text("--lossy")
    expect(command).to_contain_text("--seed 7")

    page.get_by_role("button", name="Expression").click()
    field = page.get_by_label("Expressions, one for each port")
    expect(field).to_have_value(re.compile("^tcp src=10.0.0.0/16"))
    field.fill("udp size=imix packets=1k")
    assert run(page) == "yes"
    field.fill("udp sise=60")
    assert run(page) == "failed"
    expect(page.locator(".figures")).to_contain_text("sise")

    page.get_by_role("button", name="Messages").click()
    page.get_by_label("Packet sizes (B)").fill("60, 512")
    page.get_by_label("Messages", exact=True).fill("1000")
    assert run(page) == "yes"
    tab(page, "Verdict")
    expect(page.locator("article.row")).to_have_count(2)


OPTIONS = """#include <frame.h>

__handler int mine(const frame_t *frame, void *state) {
    ((uint8_t *)state)[STATE - 1] = 1;
    return FRAME_DROP;
}
"""


def test_names_macros_rules_and_state_are_options(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    write(page, OPTIONS)
    page.get_by_text("Names, macros, rules and state").click()
    assert run(page) == "failed"
    page.get_by_label("Payload handler").fill("mine")
    page.get_by_label("Macros").fill("STATE=256")
    page.get_by_label("State (B)").fill("128")
    assert run(page) == "failed"
    expect(page.locator(".figures")).to_contain_text("127 bytes past the end of the state")
    page.get_by_label("State (B)").fill("256")
    assert run(page) == "yes"
    command = page.locator(".command code")
    expect(command).to_contain_text("--state-bytes 256 --seed 1 --payload mine -D STATE=256")
    page.get_by_label("Steering rules, one a line").fill("udp\ntcp")
    assert run(page) == "yes"
    expect(command).to_contain_text("--rule udp --rule tcp")
    page.get_by_label("Macros").fill('STATE="../x.h"')
    page.keyboard.press("Control+Enter")
    expect(page.locator(".banner.bad, .answer[data-answer=failed]").first).to_be_visible()
    # The header and completion handlers are those of messages.
    for kind in ("Header", "Completion"):
        page.get_by_label(f"{kind} handler").fill(kind.lower())
        expect(page.get_by_label(f"{kind} handler")).to_have_value(kind.lower())


def test_a_dropped_capture_is_traffic_and_another_file_is_refused(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    page.get_by_role("button", name="Capture", exact=True).click()
    drop(page, "[data-drop=capture]", "small.pcap", capture(300))
    expect(page.locator(".uploaded")).to_contain_text("300 packets")
    page.locator(".fields").get_by_label("Rate").fill("recorded")
    page.get_by_label("Fill cut packets with zeros").check()
    assert run(page) in {"yes", "barely"}
    # The whole page takes files, too.
    drop(page, ".app", "words.txt", b"no capture at all\n" * 9)
    expect(page.locator(".banner.bad")).to_contain_text("words.txt")
    expect(page.locator(".uploaded")).to_contain_text("small.pcap")
    drop(page, ".app", "dropped.c", program("spread.c").encode())
    expect(page.get_by_role("heading", name="dropped.c")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("#define CORES 16")


def test_packets_have_dispositions_and_bytes(visit: Opener, address: str) -> None:
    page = visit(address)
    assert answer(page) == "yes"
    tab(page, "Packets")
    expect(page.locator(".line").first).to_contain_text("drop")
    page.locator(".line").nth(2).click()
    expect(page.locator(".layer").first).to_contain_text("Ethernet")
    expect(page.locator(".detail")).to_contain_text("10.")
    page.get_by_role("grid", name="Packets").press("ArrowDown")
    expect(page.get_by_role("heading", name="Packet 3")).to_be_visible()
    page.get_by_role("button", name="Latency", exact=True).click()
    page.get_by_role("button", name="Latency").click()
    expect(page.get_by_role("columnheader", name="Latency")).to_have_attribute("aria-sort", "descending")
    page.get_by_label("Show", exact=True).select_option(index=1)
    page.get_by_role("button", name="Show in the timeline").click()
    expect(page.get_by_role("button", name="Packet 3")).to_be_enabled()

    tab(page, "Latency")
    expect(page.locator(".histogram rect").first).to_be_visible()
    expect(page.locator(".times")).to_contain_text("p99.9")
    tab(page, "Instructions")
    expect(page.locator(".code").first).to_contain_text("sampler.c:")


def shown_range(url: str) -> list[int] | None:
    """The shown part of the timeline, in ps, that an address of the page holds."""
    letters = urlsplit(url).fragment
    packed = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    view: dict[str, Any] = json.loads(zlib.decompress(packed, wbits=-15))["view"] if packed else {}
    return view.get("range")


def test_the_timeline_takes_keys_pointers_and_the_wheel(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    answer(page)
    tab(page, "Timeline")
    canvas = page.locator("canvas")
    canvas.focus()
    for key in ["+", "+", "=", "ArrowRight", "ArrowLeft", "-", "PageDown", "PageUp", "Home", "0", "+"]:
        canvas.press(key)
    canvas.press("Shift+ArrowRight")
    canvas.press("Shift+ArrowRight")
    chosen = page.locator("#timeline-event")
    expect(chosen).to_contain_text("from")
    first = chosen.inner_text()
    canvas.press("ArrowDown")
    expect(chosen).not_to_have_text(first)
    canvas.press("ArrowUp")
    canvas.press("p")
    for name in ["Zoom in", "Zoom out", "Whole run", "All packets"]:
        page.get_by_role("button", name=name).click()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 400, box["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -800)
    page.keyboard.up("Control")
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 60, steps=4)
    page.mouse.up()
    page.mouse.wheel(0, 100)
    # The shown part is in the address; a heading closes its group.
    page.wait_for_url(lambda url: shown_range(url) is not None)
    page.mouse.click(box["x"] + 40, box["y"] + 30)


def test_the_state_is_in_the_address_and_the_token_is_not(visit: Opener, address: str) -> None:
    token = urlsplit(address).query.partition("=")[2]
    assert len(token) > 15
    page = visit(address)
    page.get_by_label("Packets", exact=True).fill("3k")
    tab(page, "Latency")
    page.get_by_role("button", name="Copy address").click()
    expect(page.locator(".banner")).to_contain_text("Address copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert token not in copied
    # The page writes its address a moment after a change. Its policy refuses the polling of an expression.
    page.wait_for_url(lambda url: urlsplit(url).fragment == urlsplit(copied).fragment)
    assert token not in page.url
    page.reload()
    expect(page.get_by_label("Packets", exact=True)).to_have_value("3k")
    expect(page.get_by_role("tab", name="Latency")).to_have_attribute("aria-selected", "true")

    # Another tab with the copied address and the token.
    other = visit(f"{address}#{urlsplit(copied).fragment}")
    expect(other.get_by_label("Packets", exact=True)).to_have_value("3k")
    # Two tabs are independent.
    other.get_by_label("Packets", exact=True).fill("4k")
    expect(page.get_by_label("Packets", exact=True)).to_have_value("3k")
    assert answer(page) == "yes"
    assert answer(other) == "yes"


def test_an_address_without_a_token_says_where_to_find_it(visit: Opener, address: str) -> None:
    page = visit(address.partition("?")[0])
    expect(page.locator(".banner.bad")).to_contain_text("Open the address that nicety serve prints")


def test_a_run_is_cancelled(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    answer(page)
    page.get_by_label("Packets", exact=True).fill("2M")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".figures")).to_contain_text("Cancelled")
    page.get_by_label("Packets", exact=True).fill("2k")
    assert run(page) == "yes"


# A second program comes after the page shows the first one's name, and before its editor shows the first one's text.
BOTH = """async (name) => {
    const [library, title] = ["#library", "#program-title"].map((each) => document.querySelector(each));
    const choose = (value) => {
        library.value = value;
        library.dispatchEvent(new Event("change", { bubbles: true }));
    };
    await new Promise((done) => {
        new MutationObserver((_, observer) => {
            observer.disconnect();
            choose(" file");
            done();
        }).observe(title, { characterData: true, childList: true, subtree: true });
        choose(name);
    });
}"""


def test_the_second_of_two_programs_stays(visit: Opener, address: str) -> None:
    page = visit(address)
    quiet(page)
    text = page.locator(".cm-content").inner_text()
    library = page.get_by_label("Program of the library")
    name = library.locator("optgroup").first.locator("option").first.inner_text()
    page.evaluate(BOTH, name)
    expect(page.locator("#program-title")).to_have_text("sampler.c")
    expect(page.locator(".cm-content")).to_have_text(text, use_inner_text=True)


def test_cards_and_programs_are_chosen(visit: Opener, address: str, tmp_path: Path) -> None:
    page = visit(address)
    quiet(page)
    answer(page)
    tab(page, "Compare")
    page.get_by_label("Compare with card").select_option("spin-100g-rv64")
    assert run(page) == "yes"
    expect(page.locator(".compare")).to_contain_text("spin-100g-rv64")
    page.get_by_role("button", name="Remove spin-100g-rv64").click()
    page.get_by_label("Spec").select_option("spin-discrete")
    expect(page.locator(".panel small").first).not_to_be_empty()
    library = page.get_by_label("Program of the library")
    name = library.locator("optgroup").first.locator("option").first.inner_text()
    library.select_option(name)
    expect(page.locator("#program-title")).not_to_have_text("sampler.c")
    library.select_option(" file")
    expect(page.locator("#program-title")).to_have_text("sampler.c")
    (tmp_path / "own.c").write_text(program("spread.c"))
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open", exact=True).click()
    chooser.value.set_files(tmp_path / "own.c")
    expect(page.locator("#program-title")).to_have_text("own.c")


def test_a_saved_page_opens_without_a_server(visit: Opener, address: str, tmp_path: Path) -> None:
    page = visit(address)
    assert answer(page) == "yes"
    tab(page, "Source")
    expect(page.locator("tr.heatline").first).to_be_visible(timeout=WAIT_MS)
    with page.expect_download() as download:
        page.keyboard.press("Control+s")
    file = tmp_path / "saved.html"
    download.value.save_as(file)
    assert urlsplit(address).query.partition("=")[2] not in file.read_text(encoding="utf-8")
    saved = visit(file.as_uri())
    expect(saved.get_by_text("it can only be read")).to_be_visible()
    assert answer(saved) == "yes"
    expect(saved.locator("tr.heatline").first).to_be_visible()
    expect(saved.locator(".cm-content")).to_contain_text("pool.packets = packets;")
    for name in ["Verdict", "Instructions", "Timeline", "Packets", "Latency", "Compare", "Findings"]:
        tab(saved, name)
        expect(saved.get_by_role("tabpanel")).not_to_be_empty()
    tab(saved, "Timeline")
    expect(saved.locator(".timeline")).to_contain_text("events")
    assert saved.get_by_role("button", name="Run", exact=True).count() == 0


def test_edits_are_kept_when_the_server_ends(visit: Opener, tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path, "--nic", "spin-100g") as (own, server):
        page = visit(own)
        quiet(page)
        write(page, "// an edit\n" + program("sampler.c"))
        stop(server)
        expect(page.locator(".banner.bad")).to_contain_text("edits are kept")
        expect(page.locator(".cm-content")).to_contain_text("// an edit")
        page.keyboard.press("Control+Enter")
        assert answer(page) == "failed"
        expect(page.locator(".figures")).to_contain_text("connection")
        expect(page.locator(".cm-content")).to_contain_text("// an edit")


def stop(server: Popen[str]) -> None:
    server.terminate()
    server.wait(30)


def test_keys_choose_tabs_and_show_help(visit: Opener, address: str) -> None:
    page = visit(address, motion=False)
    quiet(page)
    page.keyboard.press("Alt+4")
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Timeline").press("ArrowRight")
    expect(page.get_by_role("tab", name="Packets")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Ctrl+Enter")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("Colours", exact=True).select_option("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.get_by_role("button", name="Copy command").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("nicety bench handlers")


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_axe_finds_nothing(visit: Opener, address: str, look: str) -> None:
    page = visit(address, PHONE if look == "phone" else WIDE, dark=look == "dark")
    assert answer(page) == "yes"
    for name in ["Verdict", "Source", "Instructions", "Timeline", "Packets", "Latency", "Compare", "Findings"]:
        tab(page, name)
        if name in {"Source", "Instructions"}:
            expect(page.locator(".code").first).to_be_visible(timeout=WAIT_MS)
        if name == "Packets":
            page.locator(".line").first.click()
            expect(page.locator(".layer").first).to_be_visible(timeout=WAIT_MS)
        found: dict[str, Any] = Axe().run(page).response
        faults = [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found["violations"]]
        assert faults == [], name
    if look == "phone":
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_picture_of_the_documentation_is_taken(visit: Opener, address: str, tmp_path: Path) -> None:
    page = visit(address, {"width": 1280, "height": 800}, motion=False)
    quiet(page)
    write(page, program("locked.c"))
    run(page)
    tab(page, "Source")
    expect(page.locator(".heatgutter .heat6")).to_have_count(1)
    page.locator(".cm-scroller").evaluate("node => node.scrollTo(0, 130)")
    tab(page, "Verdict")
    target = PICTURE if os.environ.get("NICETY_WRITE") else tmp_path / "workbench.png"
    page.screenshot(path=target)
    assert target.stat().st_size < 300_000
    assert PICTURE.exists()

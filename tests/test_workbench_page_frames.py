"""Frames a second of the timeline with a million events: printed, and not asserted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from workbench import browse, saved_page

# Drags the timeline a step in each frame, at three levels of zoom, and returns frames a second and milliseconds of
# each frame's own work.
DRAG = """async () => {
  const canvas = document.querySelector("canvas");
  const box = canvas.getBoundingClientRect();
  const frame = () => new Promise(requestAnimationFrame);
  const point = (name, x) => canvas.dispatchEvent(new PointerEvent(name, {
    pointerId: 1, clientX: box.left + x, clientY: box.top + 100, bubbles: true }));
  canvas.setPointerCapture = () => {};
  const results = [];
  for (const zooms of [3, 8, 12]) {
    canvas.focus();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
    for (let at = 0; at < zooms; at += 1)
      canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    await frame();
    point("pointerdown", 700);
    const begun = performance.now();
    let frames = 0, x = 700, step = 7;
    while (performance.now() - begun < 3000) {
      x += step;
      if (x > 900 || x < 300) step = -step;
      point("pointermove", x);
      await frame();
      frames += 1;
    }
    results.push(1000 * frames / (performance.now() - begun));
    point("pointerup", x);
  }
  return results;
}"""


@pytest.mark.soak
def test_prints_the_frames_a_second_of_a_million_events(
    tool: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page_file = tmp_path / "saved.html"
    saved_page(page_file, 1_000_000)
    with sync_playwright() as playwright:
        browser = browse(playwright, tool("chromium"))
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto(page_file.as_uri())
        page.locator("canvas").wait_for()
        frames = page.evaluate(DRAG)
        browser.close()
    with capsys.disabled():
        print(f"\n1 M events, frames a second at 3, 8 and 12 steps of zoom: {[round(each, 1) for each in frames]}")
    assert len(frames) == 3

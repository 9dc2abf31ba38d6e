"""Pages in a real browser: nothing overlaps or sticks out, nothing is loaded from elsewhere, and trees fold.

Chromium opens each page with a script at its end, which writes what it measured into the page. `.ci/run` installs the
browser; elsewhere the tests are skipped where there is none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest

import upheld
from upheld.base.pages import Markup
from upheld.base.plots import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="there is no Chromium")

RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). far(x) :- path(x, y), !edge(x, y)."

_MEASURE = """
<script>
const sticking_out = [];
for (const svg of document.querySelectorAll("svg")) {
  const all = svg.getBoundingClientRect();
  for (const part of svg.querySelectorAll("text, rect, circle, line")) {
    const box = part.getBoundingClientRect();
    if (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1)
      sticking_out.push(part.outerHTML);
  }
}
const pictures = [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
const folds = [];
for (const fold of document.querySelectorAll("details[open]")) {
  const open = fold.offsetHeight;
  fold.querySelector("summary").click();
  folds.push([open, fold.offsetHeight]);
  fold.open = true;
}
const found = document.createElement("pre");
found.id = "measured";
found.textContent = JSON.stringify({
  sticking_out, folds,
  pictures: pictures.map(box => [box.width, box.height]),
  text: document.body.innerText,
  loaded: performance.getEntriesByType("resource").map(each => each.name),
  wide: document.documentElement.scrollWidth, window: window.innerWidth,
});
document.body.append(found);
</script>
"""


def measured(html: str, folder, width: int = 1000) -> dict:
    """Return what the script finds in a page in a window of some width."""
    file = folder / "page.html"
    file.write_text(html.replace("</body>", f"{_MEASURE}</body>"), encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}",
        f"--window-size={width},2000", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True).stdout
    written = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.DOTALL)
    assert written, "the script has ended with an error"
    return json.loads(unescape(written[1]))


def maintained() -> upheld.Materialisation:
    m = upheld.materialise(RULES, {"edge": [(i, i + 1) for i in range(30)]})
    for number in range(20):
        m.update(insert={"edge": [(100 + number, number)]}, delete={"edge": [(number, number + 1)]})
    return m


@pytest.mark.parametrize("width", [1000, 500])
def test_the_page_of_a_profile(tmp_path, width):
    """Plots are drawn within their frames, also in a narrow window, and the page needs no other file."""
    file = tmp_path / "profile.html"
    maintained().profile().save(file)
    found = measured(file.read_text(encoding="utf-8"), tmp_path, width)
    assert found["pictures"] and all(w > 100 and h > 10 for w, h in found["pictures"])
    assert found["sticking_out"] == [] and found["loaded"] == []
    assert "path(x, z) :- path(x, y), edge(y, z)." in found["text"]
    assert width < 1000 or found["wide"] <= found["window"]


def test_a_picture_that_is_cut_off_is_found(tmp_path):
    """What the other tests look for is seen where it is."""
    picture = Markup('<svg width="200" height="50"><text x="180" y="20">too long for its frame</text></svg>')
    assert len(measured(page("A page", picture), tmp_path)["sticking_out"]) == 1


def test_what_notebooks_show(tmp_path):
    """Relations, changes, proofs, plans and memory are readable text; a proof folds at a click."""
    m = maintained()
    change = m.preview(insert={"edge": [(40, 41)]}, delete={"edge": [(25, 26)]})
    proof = m.explain("path", (21, 25))
    shown = [m, m["path"], change, change.statistics, m.plans(), m.memory(), m.profile(), proof]
    found = measured(page("All", *(Markup(each._repr_html_()) for each in shown)), tmp_path)
    assert found["sticking_out"] == [] and found["loaded"] == []
    assert "path(21, 25)" in found["text"]
    assert found["folds"] and all(closed < opened for opened, closed in found["folds"])

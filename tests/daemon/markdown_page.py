"""Markdown as a code host shows it: HTML with its rules and widths, and a picture of it."""

import json
import re
import subprocess
from pathlib import Path
from shutil import which

from markdown_it import MarkdownIt

WIDTH_PIXELS = 860
"""Of a pull request's first comment on a common screen, with its frame."""
STYLE = """
body { margin: 0; padding: 16px; background: #f6f8fa; }
article { box-sizing: border-box; width: 828px; padding: 16px; background: #fff;
  border: 1px solid #d1d9e0; border-radius: 6px; color: #1f2328; font-size: 14px; line-height: 1.5;
  font-family: -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: break-word; }
p, ul, table, details, pre, blockquote { margin: 0 0 16px; }
h3 { margin: 24px 0 16px; font-size: 1.25em; font-weight: 600; line-height: 1.25; }
ul { padding-left: 2em; }
li + li { margin-top: 0.25em; }
img { max-width: 100%; background: #fff; }
code { padding: 0.2em 0.4em; background: #818b981f; border-radius: 6px; font-size: 85%;
  font-family: "Liberation Mono", "DejaVu Sans Mono", monospace; white-space: break-spaces; }
pre { padding: 16px; overflow: auto; background: #f6f8fa; border-radius: 6px; line-height: 1.45; }
pre code { padding: 0; background: none; white-space: pre; }
table { display: block; width: max-content; max-width: 100%; overflow: auto;
  border-spacing: 0; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; }
th { font-weight: 600; }
tr:nth-child(2n) { background: #f6f8fa; }
blockquote { padding: 0 1em; color: #59636e; border-left: 0.25em solid #d1d9e0; }
summary { cursor: pointer; }
"""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return next(filter(None, map(which, _BROWSERS)), None)


def to_html(markdown: str, *, unfolded: bool = False) -> str:
    """Return the page; HTML in it counts, as it does where tables do."""
    body = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    shown = body.render(markdown)
    if unfolded:
        shown = shown.replace("<details>", "<details open>")
    # Without its first word a browser shows tables as those of the last century.
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><article>{shown}</article>'


def draw(browser: str, html: str, picture: Path, *, height: int = 3000) -> None:
    """Write a picture of a page."""
    page = picture.with_suffix(".html")
    page.write_text(html, encoding="utf-8")
    _browse(browser, page, f"--window-size={WIDTH_PIXELS},{height}", f"--screenshot={picture}")


def measure(browser: str, html: str, page: Path) -> dict[str, int]:
    """Return what a browser finds: pictures, broken ones, and parts wider than their place."""
    page.write_text(html + _MEASURE, encoding="utf-8")
    dumped = _browse(browser, page, f"--window-size={WIDTH_PIXELS},3000", "--dump-dom")
    found = re.search(r'<p id="told">(\{.*?\})</p>', dumped)
    assert found, dumped[-500:]
    told: dict[str, int] = json.loads(found[1])
    return told


_MEASURE = """<script>addEventListener("load", () => {
  const images = [...document.images], tables = [...document.querySelectorAll("table")];
  const told = {
    images: images.length,
    broken: images.filter((image) => !image.naturalWidth).length,
    tables: tables.length,
    wide: tables.filter((table) => table.scrollWidth > table.clientWidth + 1).length,
  };
  document.body.insertAdjacentHTML("beforeend", `<p id="told">${JSON.stringify(told)}</p>`);
});</script>"""


def _browse(browser: str, page: Path, *asked: str) -> str:
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--allow-file-access-from-files", f"--user-data-dir={page.parent / 'browser'}",
        *asked, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, timeout=120, text=True)
    return done.stdout

"""Chromium without a window, asked over a pipe: pages at a width, in light, dark and print, as a reader sees them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--no-first-run",
)
_ANSWER_S = 120.0
WITHOUT_CHROMIUM = "no Chromium here: apt-get install chromium"
WITHOUT_AXE = "axe-core-python is not installed: pip install -e '.[test]'"


def find_chromium() -> str | None:
    """The browser's path; ``None`` where there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def find_axe() -> Path | None:
    """The script of axe-core; ``None`` where it is not installed."""
    found = find_spec("axe_core_python")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) / "axe.min.js" if places else None


class Browser:
    """One tab of a headless Chromium; a context manager that ends the browser.

    Its commands are those of the DevTools protocol, each answered before the next is sent.
    """

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def pipes() -> None:
            """The browser reads commands from descriptor 3 and answers on 4."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
            for end, place in zip(ends, (3, 4), strict=True):
                os.dup2(end, place)

        self._process = subprocess.Popen(
            [path, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=pipes,
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._count, self._session = b"", 0, ""
        self._events: list[dict[str, object]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = str(self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait(30.0)
        self._profile.cleanup()

    def ask(self, method: str, **parameters: object) -> dict[str, object]:
        """Send a command and return its result.

        Raises
        ------
        RuntimeError
            If the browser refuses the command, ends, or does not answer in two minutes.
        """
        self._count += 1
        message: dict[str, object] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(method)
            if answer.get("id") == self._count:
                break
            self._events.append(answer)
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer.get('error')}")
        return answer["result"]  # type: ignore[return-value]

    def _next(self, waiting_for: str) -> dict[str, object]:
        end = time.monotonic() + _ANSWER_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0.0))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError(f"{waiting_for}: the browser {'ended' if ready else 'does not answer'}")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def open(self, page: Path, width: int, height: int = 900, *, dark: bool = False, media: str = "") -> list[str]:
        """Load a file at a width in CSS pixels; returns the addresses that it requested, its own left out."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._events.clear()
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next("loading"))
        sent = [event["params"] for event in self._events if event.get("method") == "Network.requestWillBeSent"]
        addresses = [one["request"]["url"] for one in sent]  # type: ignore[index]
        return [address for address in addresses if address != page.resolve().as_uri()]

    def evaluate(self, script: str) -> object:
        """The value of a JavaScript expression on the page; a promise is awaited."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")  # type: ignore[attr-defined]

    def height(self) -> float:
        """Height of the page in CSS pixels."""
        return float(str(self.evaluate("document.documentElement.scrollHeight")))

    def pdf(self) -> bytes:
        """The page as the print dialogue saves it: A4, the page's own margins."""
        answer = self.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        return base64.b64decode(str(answer["data"]))

    def axe(self, script: Path, rules: Sequence[str] = ()) -> list[str]:
        """What axe-core finds wrong in what is shown: the rule, and the first elements that break it.

        ``rules`` limits it to some. Folded contents are taken out first: axe would walk them only to leave them out.
        """
        self.evaluate("document.querySelectorAll('details:not([open]) > :not(summary)').forEach(e => e.remove())")
        self.evaluate(script.read_text(encoding="utf-8") + ";0")
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found = self.evaluate(
            f"axe.run(document, {json.dumps(options)}).then(found => found.violations.map("
            "one => one.id + ': ' + one.nodes.slice(0, 5).map(node => node.html.slice(0, 200)).join(' | ')))"
        )
        return list(found)  # type: ignore[call-overload]


def printed_pages(pdf: bytes) -> int:
    """How many pages a PDF of Chromium has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))

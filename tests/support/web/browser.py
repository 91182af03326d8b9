"""A headless Chromium, driven over a pipe by the DevTools protocol: nothing but the browser itself is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# WebGPU by Vulkan in software, on a machine without a GPU.
WEBGPU = (
    "--enable-unsafe-webgpu", "--enable-features=Vulkan", "--use-vulkan=swiftshader", "--use-webgpu-adapter=swiftshader",
    "--disable-gpu-watchdog",  # compiling a kernel is no hang
)  # fmt: skip
NO_WEBGPU = ("--disable-features=WebGPU", "--disable-gpu")
KEYS = {"Enter": 13, "Tab": 9, " ": 32, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_TIMEOUT_S = 1500.0  # software compiles kernels for minutes where others work, too


def executable() -> str | None:
    """Where Chromium is, or a browser like it."""
    return next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


class Page:
    """A tab. ``errors``: what the console had to say of errors, and exceptions that nobody caught."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []
        self.target = ""  # what a test expects models to run on
        browser.pages[session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        return self._browser.call(method, params, self._session)

    def begin_with(self, script: str) -> None:
        """JavaScript that runs before that of any page."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript, of a promise when it is kept."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description") or details["text"])
        return found["result"].get("value")

    def until(self, condition: str, timeout_s: float = 600.0) -> None:
        """Wait until JavaScript finds ``condition`` to be true."""
        end = time.monotonic() + timeout_s
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"{condition} does not come true: {self.errors}"
            time.sleep(0.05)

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def close(self) -> None:
        self.call("Page.close")

    def drag(self, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line with the mouse."""
        for kind, (x, y) in (
            ("mousePressed", points[0]),
            *(("mouseMoved", p) for p in points[1:]),
            ("mouseReleased", points[-1]),
        ):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def press(self, key: str) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        code = KEYS[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path) -> None:
        """All of the page, below what the window shows, too."""
        file.parent.mkdir(parents=True, exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")


class Browser:
    """See `started`."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process = process
        self._to = to
        self._back = back
        self._rest = b""
        self._number = 0
        self.pages: dict[str, Page] = {}

    def page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Page(self, session)

    def call(self, method: str, params: Mapping[str, Any], session: str = "") -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _TIMEOUT_S
        while True:
            answer = self._read(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            if answer.get("sessionId") in self.pages:
                self.pages[answer["sessionId"]].hear(answer["method"], answer["params"])

    def _read(self, end: float) -> Any:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._back, 1 << 20) if ready else b""
            assert data, "the browser says nothing any more"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


@contextmanager
def started(*flags: str) -> Iterator[Browser]:
    """A browser with a profile of its own, which is gone afterwards."""
    program = executable()
    assert program is not None, "ask executable() before"
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    handed = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (theirs_in, theirs_out)]  # not where they are to be

    def hand_over() -> None:
        os.dup2(handed[0], 3)
        os.dup2(handed[1], 4)

    with tempfile.TemporaryDirectory(prefix="xyntra-browser-", ignore_cleanup_errors=True) as profile:
        arguments = (
            "--headless=new", "--no-sandbox", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
        )  # fmt: skip
        process = subprocess.Popen(
            [program, *arguments, f"--user-data-dir={profile}", *flags, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=hand_over,
            process_group=0,
        )
        for end in (theirs_in, theirs_out, *handed):
            os.close(end)
        try:
            yield Browser(process, ours_out, ours_in)
        finally:
            with suppress(OSError, AssertionError):
                os.write(ours_out, b'{"id": 0, "method": "Browser.close"}\0')
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours_out)
            os.close(ours_in)

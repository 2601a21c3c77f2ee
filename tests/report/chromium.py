"""A headless Chromium driven over its DevTools pipe: standard library only, for checks of the report page.

Not a test.  ``find()`` says where Chromium is; ``Browser`` opens one page and records console errors and requests.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
LAUNCH = "import os,sys; a=sys.argv; os.dup2(int(a[1]),3); os.dup2(int(a[2]),4); os.execv(a[3], a[3:])"
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars "
    "--disable-extensions --disable-background-networking --disable-component-update --disable-sync "
    "--force-color-profile=srgb --remote-debugging-pipe"
)


def find() -> str | None:
    """The path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        program = find()
        assert program is not None, "no Chromium on this machine"
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 60) for fd in (to_child, from_child)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, high), program, *FLAGS.split(), f"--user-data-dir={profile}"],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (to_child, from_child, *high):
            os.close(fd)
        self._buffer = b""
        self._last = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.look(width, height, dark=dark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._read)
        os.close(self._write)

    def look(self, width: int, height: int, *, dark: bool = False, touch: bool = False) -> None:
        """Set the size of the window, the preferred colours and whether there is a touch screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One DevTools command and its answer."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            answer = self._next(until)
            if answer is None:
                break
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)
        raise TimeoutError(f"Chromium did not answer {method}")

    def _next(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            chunk = os.read(self._read, 1 << 16) if ready else b""
            if not chunk:
                return None
            self._buffer += chunk
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> None:
        """Until the expression is true."""
        until = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < until, f"still false after {seconds} s: {expression}"
            time.sleep(0.05)

    def open(self, path: Path, ready: str) -> None:
        """Load a local file and wait."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(f"document.readyState === 'complete' && ({ready})")

    def click(self, x: float, y: float) -> None:
        """A press and release of the left button at a point of the window."""
        self.drag((x, y), (x, y))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at one point, move to another, release."""
        (x, y), (u, v) = start, end
        mouse = "Input.dispatchMouseEvent"
        self.call(mouse, type="mouseMoved", x=x, y=y)
        self.call(mouse, type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
        for step in range(1, 6) if start != end else ():
            self.call(
                mouse, type="mouseMoved", x=x + (u - x) * step / 5, y=y + (v - y) * step / 5, button="left", buttons=1
            )
        self.call(mouse, type="mouseReleased", x=u, y=v, button="left", clickCount=1)

    def key(self, name: str) -> None:
        """Press a key such as ``ArrowRight``."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13, "Tab": 9}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes.get(name, 0)
            )

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of the window, or of the whole page."""
        clip: dict[str, Any] = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "scale": 1} | {k: size[k] for k in ("width", "height")},
            }
        shot = self.call("Page.captureScreenshot", format="png", **clip)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

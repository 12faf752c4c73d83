"""A browser driven over the WebDriver protocol, by the standard library alone."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
NARROWEST = 500  # a window's least width; below it a telephone is emulated
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Browser:
    """Chromium by its driver; ``with Browser(folder) as browser``."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1280, 900)) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}/session"
        self.driver = subprocess.Popen(
            [shutil.which("chromedriver"), f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        arguments = [*QUIET, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"]
        options = {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self.size = size
        for _ in range(100):
            try:
                found = self._send("POST", "", {"capabilities": {"alwaysMatch": options}})
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        self.base += f"/{found['sessionId']}"
        if size[0] < NARROWEST:
            seen = {"width": size[0], "height": size[1], "deviceScaleFactor": 2, "mobile": True}
            self.emulate("setDeviceMetricsOverride", seen)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def _send(self, method: str, path: str, body: object = None):
        raw = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=raw, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.loads(reply.read())["value"]

    def emulate(self, command: str, seen: dict[str, object]) -> None:
        """Have pages see another device."""
        command = {"cmd": f"Emulation.{command}", "params": seen}
        self._send("POST", "/goog/cdp/execute", command)

    def open(self, address: str) -> None:
        self._send("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: object):
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> str:
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        return found[ELEMENT]

    def type(self, selector: str, text: str) -> None:
        """Keys into an element; a path into a file field."""
        self._send("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def keys(self, *keys: str) -> None:
        """Keys to whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send(
            "POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]}
        )

    def wait(self, script: str, seconds: float = 120.0):
        """Until the script returns something true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited in vain for {script}")

    def log(self) -> list[str]:
        """What the console said so far that is an error or a warning."""
        said = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in said if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, path: Path) -> None:
        path.write_bytes(b64decode(self._send("GET", "/screenshot")))

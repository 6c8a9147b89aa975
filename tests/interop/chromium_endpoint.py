"""Chromium as a viewer: `chromium_endpoint.py URL` opens a page over HTTP/3, plays its video to the end, and writes
/downloads/played.json and /downloads/picture.png. ORIGIN and SPKI name the server and the key that is taken for it."""

import base64
import json
import os
import sys
from pathlib import Path

from railyard.report.chromium import Browser

SECONDS, FPS = 3, 25
PAGE = '<!doctype html><title>video</title><video muted width="640" height="360" src="video.webm"></video>\n'
# A square moves over a plain ground, and the number of the picture is written above it.
RECORD = """(async () => {
  const canvas = document.body.appendChild(document.createElement('canvas'));
  [canvas.width, canvas.height] = [320, 180];
  const context = canvas.getContext('2d'), parts = [];
  const recorder = new MediaRecorder(canvas.captureStream(FPS), {mimeType: 'video/webm;codecs=vp8'});
  recorder.ondataavailable = event => parts.push(event.data);
  const stopped = new Promise(resolve => { recorder.onstop = resolve; });
  recorder.start();
  for (let i = 0; i < PICTURES; i++) {
    context.fillStyle = '#204080';
    context.fillRect(0, 0, 320, 180);
    context.fillStyle = '#f0c020';
    context.fillRect(4 * i % 280, 90, 40, 40);
    context.fillStyle = '#ffffff';
    context.font = '40px sans-serif';
    context.fillText('picture ' + i, 40, 60);
    await new Promise(resolve => setTimeout(resolve, 1000 / FPS));
  }
  recorder.stop();
  await stopped;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(Array.from(bytes, value => String.fromCharCode(value)).join(''));
})()"""
HALF = "video.play().then(() => new Promise(go => { video.ontimeupdate = () => video.currentTime > 1 && go(); }))"
END = """new Promise(go => { video.onended = go; if (video.ended) go(); }).then(() => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  canvas.getContext('2d').drawImage(video, 0, 0);
  const fetched = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return {
    ended: video.ended,
    seconds: video.currentTime,
    pictures: video.getVideoPlaybackQuality().totalVideoFrames,
    size: [video.videoWidth, video.videoHeight],
    ground: Array.from(canvas.getContext('2d').getImageData(5, 170, 1, 1).data),
    protocols: fetched.map(entry => [entry.name.split('/').pop(), entry.nextHopProtocol]),
  };
})"""


def record_video(target: Path) -> None:
    """A video of SECONDS by Chromium's own recorder."""
    script = RECORD.replace("FPS", str(FPS)).replace("PICTURES", str(SECONDS * FPS))
    with Browser("chromium") as browser:
        target.write_bytes(base64.b64decode(browser.open("data:text/html,", plots=False).evaluate(script)))


def play(url: str) -> None:
    options = [
        "--host-resolver-rules=",
        f"--origin-to-force-quic-on={os.environ['ORIGIN']}",
        f"--ignore-certificate-errors-spki-list={os.environ['SPKI']}",
        "--enable-quic",
        "--autoplay-policy=no-user-gesture-required",
        "--log-net-log=/logs/net.json",
        "--window-size=700,420",
    ]
    with Browser("chromium", *options) as browser:
        page = browser.open(url, plots=False)
        page.evaluate("globalThis.video = document.querySelector('video'); 0")
        page.evaluate(HALF)
        picture = page.call("Page.captureScreenshot", format="png")["data"]
        Path("/downloads/picture.png").write_bytes(base64.b64decode(picture))
        Path("/downloads/played.json").write_text(json.dumps(page.evaluate(END)), encoding="utf-8")


if __name__ == "__main__":
    play(sys.argv[1])

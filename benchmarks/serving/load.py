"""Many clients of `deepnmt serve` on one machine: speed, latency and memory.

    python benchmarks/serving/load.py
    python benchmarks/serving/load.py --parts one --seconds 60

Clients connect over loopback. Each sends a sentence of the bundled corpus to
`/translate`, waits for the answer, and sends the next one. The clients are
coroutines of this process, which takes a part of the processor, too. Parts,
each with a server of its own:

* `one`: one client, a sentence at a time
* `many`: 200 clients
* `killed`: 200 clients, while the server is killed in the middle and started
  again. A client repeats a request until it is answered

A row has the sentences per second, the median and the 99th percentile of the
milliseconds until an answer, the requests that were refused with 429 or failed
and were sent again, and those that were lost: never answered, or with another
number of translations. Memory is that of the server, in MiB, at the end of the
first fifth of the time, and how much more the most after it was, in percent.

Rows are appended to `results/load.csv`. Each part is bounded in time by
`--seconds`, and rows of parts that ran before stay: a run that was broken off
is continued by `--parts` with the rest.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

PARTS = ("one", "many", "killed")
RESULTS = Path(__file__).parent / "results" / "load.csv"
REPOSITORY = Path(__file__).parents[2]
READY_S = 900
RETRY_S = 0.2


class Server:
    """The process of a server, with its log in a file."""

    def __init__(self, words, port=0):
        self._log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "keras_deepnmt", "serve"),
                *("--port", str(port), *words),
            ],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stderr=self._log,
        )
        self.start = time.monotonic()
        self.port = int(self._event("listening")["address"].split(":")[-1])

    def wait_until_ready(self):
        """Returns the seconds from the start until all models were warm."""
        self._event("ready")
        return time.monotonic() - self.start

    def _event(self, name):
        while time.monotonic() < self.start + READY_S:
            self._log.seek(0)
            text = self._log.read()
            for line in text.splitlines():
                with contextlib.suppress(ValueError, TypeError):
                    event = json.loads(line)
                    if event["event"] == name:
                        return event
            if self.process.poll() is not None:
                raise RuntimeError(f"The server ended: {text[-2000:]}")
            time.sleep(0.1)
        raise TimeoutError(name)

    def mib(self):
        """Returns its resident memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self, number=signal.SIGTERM):
        """Ends it, and returns its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(READY_S)
        self._log.close()
        return code


class Clients:
    """Clients that send sentences until a moment, and what they got."""

    def __init__(self, port, sentences, languages):
        self._port, self._sentences = port, sentences
        self._source, self._target = languages.split("-")
        self.milliseconds = []
        self.refused = self.failed = self.lost = 0

    async def run(self, number, seconds):
        """Runs clients for a time, and until their last answers."""
        self._end = time.monotonic() + seconds
        await asyncio.gather(*(self._client(n) for n in range(number)))

    async def _client(self, number):
        choose = random.Random(number).choice
        connection = None
        while time.monotonic() < self._end:
            start = time.monotonic()
            sentence = choose(self._sentences)
            # After the end the last request may still be repeated.
            while time.monotonic() < self._end + READY_S:
                try:
                    if connection is None:
                        connection = await asyncio.open_connection(
                            "127.0.0.1", self._port
                        )
                    status, content = await self._ask(connection, sentence)
                except (OSError, EOFError, ValueError):
                    self.failed += 1
                    connection = _closed(connection)
                    await asyncio.sleep(RETRY_S)
                    continue
                if status in (429, 503):
                    self.refused += 1
                    await asyncio.sleep(RETRY_S)
                    continue
                is_right = status == 200 and isinstance(
                    content.get("translatedText"), str
                )
                self.lost += not is_right
                self.milliseconds.append(1000 * (time.monotonic() - start))
                break
            else:
                self.lost += 1
        _closed(connection)

    async def _ask(self, connection, sentence):
        reader, writer = connection
        body = json.dumps(
            {"q": sentence, "source": self._source, "target": self._target}
        ).encode()
        writer.write(
            b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split()[0])
        content = await reader.readexactly(length)
        return int(head.split()[1]), json.loads(content)


def _closed(connection):
    if connection is not None:
        connection[1].close()


async def watched(server, work, every_s=1.0):
    """Returns the memory of a server while something else runs."""
    found = []
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(OSError):
            found.append(server.mib())
        await asyncio.wait([task], timeout=every_s)
    await task
    return found


def engine_of(words):
    """The engine of the served model, its type, and the options given."""
    name = "Keras"
    for folder in map(Path, words):
        if (folder / "model.bin").is_file():
            described = json.loads((folder / "export.json").read_text())
            name = f"CTranslate2, {described['dtype']}"
    options = itertools.dropwhile(lambda w: not w.startswith("--"), words)
    return " ".join([name, *options])


def measure(part, options, sentences):
    """Runs a part, and returns its row."""
    server = Server(options.serve)
    ready_s = server.wait_until_ready()
    number = 1 if part == "one" else options.clients
    clients = Clients(server.port, sentences, options.languages)
    servers = [server]

    async def run():
        work = clients.run(number, options.seconds)
        if part != "killed":
            return await watched(server, work)
        task = asyncio.ensure_future(work)
        await asyncio.sleep(options.seconds / 2)
        servers[-1].stop(signal.SIGKILL)
        # In a thread: clients go on, and find no server for a while.
        servers.append(
            await asyncio.to_thread(Server, options.serve, server.port)
        )
        await asyncio.to_thread(servers[-1].wait_until_ready)
        await task
        return [servers[-1].mib()]

    start = time.monotonic()
    memory = asyncio.run(run())
    seconds = time.monotonic() - start
    exit_code = servers[-1].stop()
    times = sorted(clients.milliseconds)
    warm = memory[len(memory) // 5]
    return {
        **provenance("tensorflow", "keras", "fastapi", "uvicorn"),
        "engine": engine_of(options.serve),
        "part": part,
        "clients": number,
        "seconds": round(seconds, 1),
        "ready_seconds": round(ready_s, 1),
        "sentences": len(times),
        "sentences_per_second": round(len(times) / seconds, 2),
        "median_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[int(0.99 * (len(times) - 1))], 1),
        "refused": clients.refused,
        "failed": clients.failed,
        "lost": clients.lost,
        "mib": round(warm, 1),
        "mib_growth_percent": round(
            100 * (max(memory[len(memory) // 5 :]) / warm - 1), 2
        ),
        "exit_code": exit_code,
    }


def main():
    """Measures the parts and appends their rows."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--languages", default="de-en")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument(
        "--serve",
        nargs=argparse.REMAINDER,
        default=[],
        help="arguments of `deepnmt serve`, last; by default the model of the "
        "package",
    )
    options = parser.parse_args()
    from keras_deepnmt.data.demo import demo_pairs

    sentences = [pair.source for pair in demo_pairs(2_000)]
    for part in options.parts:
        row = measure(part, options, sentences)
        append_row(options.output, row)
        print(
            f"{part}: {row['sentences_per_second']} sentences/s, median "
            f"{row['median_ms']} ms, p99 {row['p99_ms']} ms, lost "
            f"{row['lost']}, memory +{row['mib_growth_percent']} %",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Whether a file that `vidrio serve` has accepted can be lost: killed and begun again under load, again and again.

    python benchmarks/serve_kill.py --kills 20

Clients upload texts and ask for translations without pause; the server gets a SIGKILL at a moment drawn at random and
is begun again on the same folder. At the end every file whose acceptance a client has heard of is fetched, and compared
with what the translator says offline.
"""

import argparse
import json
import random
import socket
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from served import SENTENCES, form, report, server, texts
from vidrio.documents.aligned import answers
from vidrio.documents.formats import plan_text
from vidrio.translate.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, default=SENTENCES, help="English sentences, one a line")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--clients", type=int, default=4, help="who upload, and as many who ask for translations")
    parser.add_argument("--seconds", type=float, default=4, help="that the server may live at most")
    given = parser.parse_args()
    draw, asked = random.Random(3), ["\n\n".join(texts(given.file, 10, seed)) for seed in range(20)]
    translator = Translator.load("en-es")
    wanted = [offline(translator, text) for text in asked]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, accepted, ended = f"http://127.0.0.1:{port}", dict[str, int](), threading.Event()

    def uploading(seed: int) -> None:
        mine = random.Random(seed)
        while not ended.is_set():
            number = mine.randrange(len(asked))
            told = post(f"{address}/translate_file", form(asked[number], wait="false"))
            if told is None:
                time.sleep(0.05)  # it was not accepted, or nobody has heard of it
            else:
                accepted[told["translatedFileUrl"]] = number
                time.sleep(mine.random() / 2)

    def asking() -> None:
        while not ended.is_set():
            body = json.dumps({"q": asked[0][:500], "source": "en", "target": "es"}).encode()
            post(f"{address}/translate", ("application/json", body)) or time.sleep(0.05)

    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--files", folder, "--model", "en-es", "--port", str(port))
        threads = [threading.Thread(target=uploading, args=(seed,)) for seed in range(given.clients)]
        threads += [threading.Thread(target=asking) for _ in range(given.clients)]
        for number in range(given.kills):
            with server(*options) as there:
                for thread in threads if not number else ():
                    thread.start()
                time.sleep(given.seconds * draw.random())
                there.process.kill()
        ended.set()
        for thread in threads:
            thread.join()
        unfinished = sum(1 for url in accepted if not (Path(folder) / job_of(url) / "translated").exists())
        with server(*options):
            lost = [url for url, number in accepted.items() if fetched(url) != wanted[number]]
    report(
        kills=given.kills,
        accepted=len(accepted),
        unfinished_at_the_last_kill=unfinished,
        lost_or_wrong=len(lost),
        seconds=time.perf_counter() - began,
    )
    assert accepted, "nothing was accepted"
    assert not lost, lost


def offline(translator: Translator, text: str) -> str:
    plan = plan_text(text)
    return plan.render(answers(translator, plan.asks))


def post(url: str, asked: tuple[str, bytes]) -> dict[str, str] | None:
    """The answer; none if there was none, because the server was killed."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, asked[1], {"Content-Type": asked[0]}), timeout=60
        ) as got:
            told: dict[str, str] = json.loads(got.read())
            return told
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        raise
    except (OSError, ValueError, urllib.error.URLError):
        return None


def job_of(url: str) -> str:
    return url.rpartition("/")[2].partition(".")[0]


def fetched(url: str, patience: float = 240) -> str:
    """The translation, as soon as it is there; empty if it is lost."""
    end = time.perf_counter() + patience
    while time.perf_counter() < end:
        try:
            with urllib.request.urlopen(url, timeout=60) as got:
                return str(got.read().decode())
        except urllib.error.HTTPError as error:
            if error.headers["Retry-After"] is None:
                return ""
        except OSError:
            pass
        time.sleep(0.2)
    return ""


if __name__ == "__main__":
    main()

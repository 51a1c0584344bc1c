"""The peers of translate_speed.py, in processes of their own, run by the Python of their own environment.

    python benchmarks/translate_peers.py serve argos SOURCE TARGET
    python benchmarks/translate_peers.py serve marian FOLDER BEAM TOKENS
    python benchmarks/translate_peers.py save MODEL SENTENCEPIECE FOLDER
    python benchmarks/translate_peers.py hello FOLDER TOKENS TEXT

`serve` reads a line of JSON, a list of jobs, and answers with one: the seconds of each job, the CPU seconds of all, and
what came out. A job of Argos is a text, one of MarianMT a batch of rows of ids. `save` makes the MarianMT model, of the
same sizes as MODEL, with random weights; `hello` is what anybody would write to translate one text with it.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    match sys.argv[1:]:
        case ["serve", "argos", source, target]:
            serve(argos(source, target))
        case ["serve", "marian", folder, beam, tokens]:
            serve(marian(folder, int(beam), int(tokens)))
        case ["save", model, sentencepiece, folder]:
            save(Path(model), Path(sentencepiece), Path(folder))
        case ["hello", folder, tokens, text]:
            hello(folder, int(tokens), text)
        case _:
            raise SystemExit(__doc__)


def serve(work: Callable[[Any], object]) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    for request in sys.stdin:
        seconds, found, cpu = [], [], time.process_time()
        for job in json.loads(request):
            began = time.perf_counter()
            found.append(work(job))
            seconds.append(time.perf_counter() - began)
        answer = {"seconds": seconds, "cpu": time.process_time() - cpu, "found": found}
        print(json.dumps(answer), file=answers, flush=True)


def argos(source: str, target: str) -> Callable[[str], str]:
    from argostranslate import translate  # type: ignore[import-not-found]

    return translate.get_translation_from_codes(source, target).translate


def marian(folder: str, beam: int, tokens: int) -> Callable[[list[list[int]]], int]:
    """Translates a batch of ids into `tokens` tokens each; how many tokens there are then."""
    import torch
    from transformers import MarianMTModel  # type: ignore[import-not-found]

    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    model = MarianMTModel.from_pretrained(folder).eval()

    def translate(ids: list[list[int]]) -> int:
        longest = max(map(len, ids))
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
        sizes = {"num_beams": beam, "min_new_tokens": tokens, "max_new_tokens": tokens}
        with torch.inference_mode():
            found = model.generate(input_ids=padded, attention_mask=mask, **sizes)
        return int(found.shape[0] * (found.shape[1] - 1))

    return translate


def save(model: Path, sentencepiece: Path, folder: Path) -> None:
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    config = json.loads((model / "config.json").read_text(encoding="utf-8"))["model"]
    special = config["special"]
    sizes = MarianConfig(
        vocab_size=config["source_vocabulary"],
        decoder_vocab_size=config["target_vocabulary"],
        d_model=config["d_model"],
        encoder_layers=config["n_encoder_layers"],
        decoder_layers=config["n_decoder_layers"],
        encoder_attention_heads=config["n_heads"],
        decoder_attention_heads=config["n_heads"],
        encoder_ffn_dim=config["d_ff"],
        decoder_ffn_dim=config["d_ff"],
        pad_token_id=max(special["pad"], 0),
        eos_token_id=special["end"],
        decoder_start_token_id=special["start"],
    )
    MarianMTModel(sizes).save_pretrained(folder)
    vocabulary = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    spm = str(sentencepiece)
    MarianTokenizer(spm, spm, str(folder / "vocab.json")).save_pretrained(folder)


def hello(folder: str, tokens: int, text: str) -> None:
    from transformers import MarianMTModel, MarianTokenizer

    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder)
    ids = model.generate(**tokenizer([text], return_tensors="pt"), min_new_tokens=tokens, max_new_tokens=tokens)
    print(tokenizer.decode(ids[0], skip_special_tokens=True))


if __name__ == "__main__":
    main()

"""CTranslate2 behind FastAPI, as one would write it in an afternoon: what `vidrio serve` is measured beside.

    python benchmarks/bare_server.py --port 5001

Each request is translated by itself, in a thread: sentences are cut at their marks, and searched as one batch.
"""

import argparse
import re
import tempfile
from pathlib import Path
from typing import Annotated

import ctranslate2
import uvicorn
from fastapi import Body, FastAPI
from tokenizers import Tokenizer

import vidrio
from vidrio.interop.to_ctranslate2 import write_engine

MODEL = Path(vidrio.__file__).parent / "models/en-es"
SENTENCE = re.compile(r"(?<=[.!?]) +")

app = FastAPI()
with tempfile.TemporaryDirectory() as temporary:
    write_engine(MODEL, Path(temporary) / "model")
    translator = ctranslate2.Translator(str(Path(temporary) / "model"), inter_threads=2, intra_threads=1)
tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))


@app.get("/languages")
def languages() -> list[str]:
    return ["en", "es"]


@app.post("/translate")
def translate(q: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    sentences = SENTENCE.split(q)
    tokens = [[*encoding.tokens, "</s>"] for encoding in tokenizer.encode_batch(sentences, add_special_tokens=False)]
    found = translator.translate_batch(tokens, beam_size=4, max_input_length=0)
    ids = [[tokenizer.token_to_id(token) for token in one.hypotheses[0]] for one in found]
    return {"translatedText": " ".join(tokenizer.decode_batch(ids))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(app, port=parser.parse_args().port, log_level="error")

"""Random Marian releases, translated by Marian itself and, imported, by glass/: greedily, the first tokens.

    python benchmarks/marian_agreement.py --marian PYTHON

PYTHON is that of an environment with pymarian (Marian as a Python package), and huggingface_hub, which it
imports. The models are random, so that they rarely end: what is compared is each translation up to where ours is cut.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from shared import TESTS
from vidrio.engine.engine import Engine
from vidrio.hypothesis import default_options
from vidrio.interop.convert import import_model
from vidrio.model.folder import read_config
from vidrio.text.tokens.tokenizer import read_tokenizers

SENTENCES, LONGEST = 40, 25

BY_MARIAN = """
import json, sys, pymarian
release, pieces = sys.argv[1], json.load(sys.stdin)
options = f"--models {release}/opus.npz --vocabs {release}/opus.vocab.yml {release}/opus.vocab.yml"
options += " --beam-size 1 --cpu-threads 1 --allow-unk --max-length-factor 20 --mini-batch 1 --maxi-batch 1 --quiet"
json.dump(pymarian.Translator(options).translate(pieces), open(sys.argv[2], "w"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--marian", required=True, help="a Python that has pymarian")
    given = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from marian_models import sentences
    from test_import_release import write_release

    for tied in (True, False):
        with tempfile.TemporaryDirectory() as temporary:
            release, folder, answer = (Path(temporary) / name for name in ("release", "ours", "answer.json"))
            write_release(release, tied=tied)
            import_model(str(release), folder)
            config, _ = read_config(folder)
            source, _ = read_tokenizers(folder, config)
            texts = sentences(SENTENCES)
            pieces = json.dumps([" ".join(source.tokens(text)) for text in texts])
            command = [given.marian, "-c", BY_MARIAN, str(release), str(answer)]
            subprocess.run(command, input=pieces, text=True, check=True, stderr=subprocess.DEVNULL)
            theirs = [line.split() for line in json.loads(answer.read_text())]
            engine = Engine.load(folder, config)
            options = replace(default_options(config), beam=1, max_length=LONGEST)
            found = engine.search([[*source.encode(text), *config.source_close] for text in texts], options)
            same = 0
            for (best, *_), line in zip(found, theirs, strict=True):
                ours = [source.token(i) for i in best.ids]
                same += line == ours if best.ended else line[: len(ours)] == ours
            kind = "one table for all" if tied else "three tables"
            print(f"{kind}: {same} of {len(texts)} translations are Marian's, up to {LONGEST} tokens")


if __name__ == "__main__":
    main()

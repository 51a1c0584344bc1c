"""Average the parameters of a model and of a fine-tuned version of it.

    python average.py MODEL FINE_TUNED SHARE TO    # SHARE: the weight of the fine-tuned model, from 0 to 1

The average keeps most of what fine-tuning added, and loses less of what the model knew before (Wortsman et al. 2022,
"Robust fine-tuning of zero-shot models").
"""

import shutil
import sys
from pathlib import Path

from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters


def average(before: Path, after: Path, share: float, to: Path) -> None:
    (config, about), old, new = read_config(after), read_parameters(before), read_parameters(after)
    to.mkdir(parents=True, exist_ok=True)
    write_parameters(to, {name: (1 - share) * old[name] + share * value for name, value in new.items()})
    shutil.copy(after / "tokenizer.json", to / "tokenizer.json")
    write_config(to, config, about)


if __name__ == "__main__":
    average(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))

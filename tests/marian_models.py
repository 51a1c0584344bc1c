"""Write random MarianMT models of every shape as Hugging Face does, with SentencePiece models of their own."""

import io
import json
import random
import shutil
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vidrio.cli import main
from vidrio.glass.machine import build
from vidrio.glass.walk import stepper
from vidrio.hypothesis import Hypothesis, Options
from vidrio.model.folder import read_config, read_parameters
from vidrio.search import search

SIZES = {"d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
SIZES |= {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2}
SPREADS = {"encoder_attn.out_proj.weight": 6, "q_proj.weight": 4, "fc2.weight": 3}
ENGLISH = tuple(
    f"The {adjective} {noun} {verb} the {other}, and {number} people saw it."
    for adjective in ("old", "young", "tall", "quiet", "green")
    for noun in ("teacher", "river", "house", "window", "garden")
    for verb in ("finds", "follows", "leaves")
    for other in ("city", "mountain", "letter", "train")
    for number in (3, 17, 240)
)
SPANISH = tuple(
    f"La {noun} {adjective} {verb} la {other}, y {number} personas lo vieron, ¿no es así?"
    for adjective in ("vieja", "joven", "alta", "tranquila", "verde")
    for noun in ("maestra", "niña", "casa", "ventana", "montaña")
    for verb in ("encuentra", "sigue", "deja")
    for other in ("ciudad", "carta", "señal", "estación")
    for number in (3, 17, 240)
)


@cache
def sentence_piece_model(texts: tuple[str, ...], pieces: int = 150, **settings: Any) -> bytes:
    """Train a SentencePiece model on texts, with the normalisation of OPUS-MT's models."""
    import sentencepiece

    model = io.BytesIO()
    usual = {"model_type": "unigram", "vocab_size": pieces, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, **{**usual, **settings})
    return model.getvalue()


def pieces_of(proto: bytes) -> list[str]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def vocabulary(protos: Sequence[bytes], languages: Sequence[str] = ()) -> dict[str, int]:
    """Number tokens as OPUS-MT does: the end, the unknown token, all pieces, language tokens, and padding last."""
    pieces = sorted({piece for proto in protos for piece in pieces_of(proto)} - {"</s>", "<unk>", "<s>"})
    tokens = ["</s>", "<unk>", *pieces, *(f">>{language}<<" for language in languages), "<pad>"]
    return {token: i for i, token in enumerate(tokens)}


def write_marian(
    folder: Path,
    *,
    seed: int = 0,
    languages: Sequence[str] = (),
    separate: bool = False,
    **told: Any,
) -> None:
    """Write a MarianMT folder. Parameters are larger than those of a fresh model, so that translations differ. The end
    token's bias is larger, too, so that translations end."""
    import torch
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    source, target = sentence_piece_model(ENGLISH, 170), sentence_piece_model(SPANISH)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    lists = (
        [vocabulary([source], languages), vocabulary([target])]
        if separate
        else [vocabulary([source, target], languages)]
    )
    for ids, name in zip(lists, ("vocab.json", "target_vocab.json"), strict=False):
        (folder / name).write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    rows, target_rows = len(lists[0]), len(lists[-1])
    pad = min(rows, target_rows) - 1
    values = {
        **{"vocab_size": rows, "decoder_vocab_size": target_rows, "max_position_embeddings": 128, **SIZES},
        **{"activation_function": "swish", "scale_embedding": True, "eos_token_id": 0, "bos_token_id": 0},
        **{"pad_token_id": pad, "decoder_start_token_id": pad, "forced_eos_token_id": None},
        "share_encoder_decoder_embeddings": not separate,
        **told,
    }
    torch.manual_seed(seed)
    model = MarianMTModel(MarianConfig(**values)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                spread = 0.3 if parameter.dim() == 1 else 1.0
                # Make the model depend on the source, and keep it from repeating one word forever.
                spread *= next((by for end, by in SPREADS.items() if name.endswith(end)), 1)
                spread *= 0.3 if ".encoder." in name and name.endswith(("out_proj.weight", "fc2.weight")) else 1
                parameter.copy_(
                    torch.randn_like(parameter) * spread * parameter.shape[-1] ** (-0.5 * (parameter.dim() > 1))
                )
                if name.endswith("norm.weight"):
                    parameter.add_(1.0)
        model.model.decoder.layers[-1].final_layer_norm.weight.mul_(4)  # makes the model confident
        model.final_logits_bias.normal_(0, 0.3)
        model.final_logits_bias[0, 0] += 3
        if model.config.tie_word_embeddings:
            model.get_output_embeddings().weight[pad] = 0  # the padding row
    model.generation_config = GenerationConfig(
        num_beams=4,
        bad_words_ids=[[pad]],
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        early_stopping=True,
    )
    model.save_pretrained(folder)
    settings = {"source_lang": "eng", "target_lang": "spa", "separate_vocabs": separate, "model_max_length": 128}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**settings, "tokenizer_class": "MarianTokenizer"}), encoding="utf-8"
    )


def searched(folder: Path, sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
    """Search in float64 with the reference and a folder's model."""
    machine = build(read_config(folder)[0], read_parameters(folder))
    special = machine.config.special
    return [search(stepper(machine, ids), special.start, special.end, options) for ids in sources]


def load_hf(folder: Path) -> tuple[Any, Any]:
    """Load the model, in float64, and its tokenizer with `transformers`."""
    from transformers import MarianMTModel, MarianTokenizer, logging
    from transformers.utils.logging import disable_progress_bar

    logging.set_verbosity_error()
    disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MarianMTModel.from_pretrained(folder).double().eval(), MarianTokenizer.from_pretrained(folder)


def generated(folder: Path, texts: Sequence[str], beam: int, longest: int, at_once: int = 50) -> list[list[int]]:
    """Return what `transformers` generates, including the end token. Padding gets no probability, because Marian has no
    such token."""
    import torch

    model, tokenizer = load_hf(folder)
    found: list[list[int]] = []
    for start in range(0, len(texts), at_once):
        inputs = tokenizer(list(texts[start : start + at_once]), return_tensors="pt", padding=True)
        with torch.no_grad():
            outputs = model.generate(
                **inputs,
                num_beams=beam,
                max_new_tokens=longest,
                min_new_tokens=1,
                early_stopping=True,
                renormalize_logits=True,
                length_penalty=1.0,
                do_sample=False,
            )
        for ids in outputs.tolist():
            end = ids.index(0, 1) + 1 if 0 in ids[1:] else len(ids)
            found.append(ids[1:end])
    return found


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return sentences of words in random order, so that they differ."""
    draw = random.Random(seed)
    words = sorted({word for line in ENGLISH for word in line.split()})
    return [" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(count)]


def random_unicode(count: int, seed: int = 0) -> list[str]:
    """Return lines with all kinds of Unicode: words, characters from every block, lone accents, all kinds of spaces."""
    draw = random.Random(seed)
    words = [word for line in ENGLISH + SPANISH for word in line.split()]
    special = "\u0301\u0308\u200b\u200d\u00a0\u3000\t\ufeff\u00ad①½ﬁ㌔Å\u212b▁👍🏽\u202e\u0000ｱﾞ가\u1100\u1161 "

    def sign() -> str:
        while True:
            code = draw.choice([draw.randrange(0x250), draw.randrange(0x10000), draw.randrange(0x110000)])
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    def part() -> str:
        kind = draw.randrange(4)
        if kind == 0:
            return draw.choice(words)
        if kind == 1:
            return "".join(draw.choices(special, k=draw.randint(1, 4)))
        if kind == 2:
            return "".join(sign() for _ in range(draw.randint(1, 5)))
        return draw.choice(words) + draw.choice(special) + draw.choice(words)

    return ["".join(f"{part()}{draw.choice(['', ' ', '  '])}" for _ in range(draw.randint(1, 8))) for _ in range(count)]


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Truncate the data, flip a bit, or insert or remove a piece."""
    kind, place = draw.randrange(4), draw.randrange(len(data))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
    return data[:place] + (draw.randbytes(40) + data[place:] if kind == 2 else data[place + 40 :])


def import_damaged(release: Path, ours: Path, count: int, say: Callable[[], str], seed: int = 1) -> int:
    """Import a folder many times, each time with a damaged file, and return how many imports were refused.

    A refused import must print a message, not a traceback, and leave no files behind.
    """
    files = {file.name: file.read_bytes() for file in release.iterdir()}
    draw, refused = random.Random(seed), 0
    for number in range(count):
        name = draw.choice(list(files))
        (release / name).write_bytes(damaged(files[name], draw))
        status = main(["import", str(release), "--to", str(ours)])
        told = say()
        assert status in (0, 1), (number, name, told)
        assert "Traceback" not in told
        assert (status == 1) == (not ours.exists())
        refused += status
        if status == 0:
            shutil.rmtree(ours)
        (release / name).write_bytes(files[name])
    return refused

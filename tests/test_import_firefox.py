"""Test the import of Marian's own files: a random model that Marian has run (marian_golden.py), variants of it, and
damaged files."""

import json
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import marian_golden
from marian_models import ENGLISH, SPANISH, random_unicode, sentence_piece_model
from vidrio.errors import ModelError
from vidrio.glass.machine import build
from vidrio.glass.walk import decode, encode, logits
from vidrio.interop.convert import import_model
from vidrio.interop.marian_files import settings_of
from vidrio.model.folder import read_config, read_parameters
from vidrio.text.tokens.charsmap import LONGEST_REPLACEMENT, Normaliser
from vidrio.text.tokens.sentence_pieces import SentencePieces
from vidrio.text.tokens.tokenizer import read_tokenizers

GOLDEN = Path(__file__).parent / "golden/marian"
MODEL, SPM, LEX = "model.enes.intgemm.alphas.bin", "vocab.enes.spm", "lex.50.50.enes.s2t.bin"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "ours"
    import_model(str(GOLDEN), folder)
    return folder


def test_texts_and_log_probabilities_are_those_of_marian(imported: Path) -> None:
    """Compare greedy search in float32 and the mean log-probability of each word. Marian printed six digits."""
    config, about = read_config(imported)
    assert (about.source_language, about.target_language) == ("en", "es")
    machine = build(config, {name: value.astype(np.float32) for name, value in read_parameters(imported).items()})
    source, target = read_tokenizers(imported, config)
    special = config.special
    for expected in EXPECTED:
        memory, ids = encode(machine, [*source.encode(expected["source"]), special.end]), []
        while special.end not in ids and len(ids) < 100:
            row = logits(machine, decode(machine, [special.start, *ids], memory))[-1].copy()
            row[special.unk] = -np.inf
            ids.append(int(row.argmax()))
        ids = ids[:-1]
        assert target.decode(ids) == expected["target"].strip()
        rows = logits(machine, decode(machine, [special.start, *ids], memory)).astype(np.float64)
        log_probs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
        words: list[list[float]] = []
        for token, log_prob in zip(ids, log_probs[np.arange(len(ids)), ids], strict=True):
            if target.token(token).startswith("▁") or not words:
                words.append([])
            words[-1].append(log_prob)
        assert np.abs([np.mean(word) for word in words] - np.array(expected["words"])).max() < 1e-5


def test_integers_stay_as_they_are_and_nothing_is_lost(imported: Path) -> None:
    """Compare with the float32 values of Marian's int8 weights, bit for bit."""
    numbers = marian_golden.parameters(marian_golden.PIECES)
    theirs = {
        name: np.frombuffer(data, np.float32).reshape(shape)
        for name, _, shape, data in marian_golden.float_items(numbers)
    }
    ours = read_parameters(imported)
    D = marian_golden.D
    assert np.array_equal(ours["embed"], theirs["Wemb"])
    assert np.array_equal(ours["enc.0.ffn.W1"], theirs["encoder_l1_ffn_W1"])
    assert np.array_equal(ours["dec.0.ssru.Wf"], theirs["decoder_l1_rnn_Wf"])
    assert np.array_equal(ours["dec.0.cross.WQ"].transpose(1, 0, 2).reshape(D, D), theirs["decoder_l1_context_Wq"])
    assert np.array_equal(ours["dec.0.cross.WO"], theirs["decoder_l1_context_Wo"])
    assert np.array_equal(ours["out.b"], theirs["decoder_ff_logit_out_b"][0])
    assert (imported / "model.safetensors").stat().st_size < 1.2 * (GOLDEN / MODEL).stat().st_size
    assert (imported / "shortlist.bin").read_bytes() == (GOLDEN / LEX).read_bytes()


# --- the same model in other file formats -----------------------------------------------------------------------------


def write_folder(folder: Path, **changes: str) -> tuple[dict[str, np.ndarray], str]:
    """Create a folder with the tokenizer. Return the float32 parameters and the changed configuration."""
    folder.mkdir()
    shutil.copy(GOLDEN / SPM, folder)
    numbers = {
        name: np.frombuffer(data, np.float32).reshape(shape)
        for name, _, shape, data in marian_golden.float_items(marian_golden.parameters(marian_golden.PIECES))
    }
    config = marian_golden.CONFIG.replace("ROWS", str(marian_golden.PIECES))
    for key, value in changes.items():
        key = key.replace("_", "-")
        lines = [line for line in config.splitlines(keepends=True) if not line.startswith(f"{key}:")]
        config = "".join(lines) + f"{key}: {value}\n"
    return numbers, config


def write_npz(folder: Path, numbers: dict[str, np.ndarray], config: str) -> None:
    text = np.frombuffer(config.encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **{**numbers, "special:model.yml": text})


def test_npz_and_float_bin_give_the_same_numbers(imported: Path, tmp_path: Path) -> None:
    expected = read_parameters(imported)
    numbers, config = write_folder(tmp_path / "npz")
    write_npz(tmp_path / "npz", numbers, config)
    write_folder(tmp_path / "bin")
    (tmp_path / "bin/any name.bin").write_bytes(marian_golden.container(marian_golden.float_items(numbers), config))
    write_folder(tmp_path / "yml")
    np.savez(tmp_path / "yml/model.npz", **numbers)
    (tmp_path / "yml/model.npz.yml").write_text(config)
    for form in ("npz", "bin", "yml"):
        import_model(str(tmp_path / form), tmp_path / f"ours-{form}")
        found = read_parameters(tmp_path / f"ours-{form}")
        assert all(np.allclose(found[name], expected[name], rtol=1e-6, atol=0) for name in expected)


def test_self_attention_and_separate_vocabularies(tmp_path: Path) -> None:
    numbers, config = write_folder(
        tmp_path / "npz",
        transformer_decoder_autoreg="self-attention",
        tied_embeddings_all="false",
        tied_embeddings="true",
    )
    for letter in "qkvo":
        for part in ("W", "b"):
            numbers[f"decoder_l1_self_{part}{letter}"] = numbers[f"decoder_l1_context_{part}{letter}"]
    for part in ("scale", "bias"):
        numbers[f"decoder_l1_self_Wo_ln_{part}"] = numbers[f"decoder_l1_context_Wo_ln_{part}"]
    numbers["encoder_Wemb"], numbers["decoder_Wemb"] = numbers["Wemb"] * 2, numbers.pop("Wemb")
    write_npz(tmp_path / "npz", numbers, config)
    (tmp_path / "npz" / SPM).rename(tmp_path / "npz/srcvocab.enes.spm")
    shutil.copy(GOLDEN / SPM, tmp_path / "npz/trgvocab.enes.spm")
    import_model(str(tmp_path / "npz"), tmp_path / "ours")
    config_of, _ = read_config(tmp_path / "ours")
    assert (config_of.decoder_cell, config_of.tying) == ("attention", "output")
    found = read_parameters(tmp_path / "ours")
    assert np.array_equal(found["src.embed"], found["tgt.embed"] * 2)
    assert np.array_equal(found["dec.0.self.WQ"], found["dec.0.cross.WQ"])


REFUSED = {
    "transformer_preprocess": "n",
    "transformer_postprocess": "da",
    "transformer_ffn_activation": "gelu",
    "transformer_decoder_autoreg": "average-attention",
    "dec_cell": "gru",
    "transformer_train_position_embeddings": "true",
    "transformer_something_new": "7",
    "tied_embeddings_src": "true",
    "right_left": "true",
    "dim_emb": "a million",
    "transformer_heads": "7",
    "type": "s2s",
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_value_that_is_not_computed_is_refused_by_its_name(tmp_path: Path, key: str) -> None:
    numbers, config = write_folder(tmp_path / "npz", **{key: REFUSED[key]})
    write_npz(tmp_path / "npz", numbers, config)
    named = "7 heads" if key == "transformer_heads" else f"{key.replace('_', '-')}: '{REFUSED[key]}'"
    with pytest.raises(ModelError, match=named):
        import_model(str(tmp_path / "npz"), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_several_values_are_refused_at_once(tmp_path: Path) -> None:
    write_npz(tmp_path / "npz", *write_folder(tmp_path / "npz", transformer_preprocess="n", skip="true"))
    with pytest.raises(ModelError, match=r"transformer-preprocess: 'n'; .*skip: 'true'|skip: 'true'; "):
        import_model(str(tmp_path / "npz"), tmp_path / "ours")


def test_no_pickle_is_read(tmp_path: Path) -> None:
    numbers, config = write_folder(tmp_path / "npz")
    write_npz(tmp_path / "npz", {**numbers, "Wemb": np.array([{"a": 1}], dtype=object)}, config)
    with pytest.raises(ModelError, match="damaged"):
        import_model(str(tmp_path / "npz"), tmp_path / "ours")


def test_the_yaml_that_marian_writes() -> None:
    text = 'a: 1\nlist:\n  - 2\n  - "3"\nempty:\n  []\nflow: [4, 5]\nnone: ""\n# a comment\nlast: x: y\n\0'
    found = {"a": "1", "list": "2 3", "empty": "", "flow": "4 5", "none": "", "last": "x: y"}
    assert settings_of(text) == found
    with pytest.raises(ValueError, match="neither"):
        settings_of("no key")


# --- damage -----------------------------------------------------------------------------------------------------------


def is_refused(folder: Path, to: Path) -> bool:
    """Return whether the import of a folder is refused. A refusal must have a reason and leave nothing behind."""
    try:
        import_model(str(folder), to)
    except ModelError as error:
        if not error.found or to.exists():
            raise
        return True
    shutil.rmtree(to)
    return False


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Truncate the data, flip a bit, overwrite bytes with absurd values, or insert or delete bytes."""
    at = draw.randrange(len(data)) if draw.random() < 0.3 else draw.randrange(min(len(data), 9000))
    size = draw.choice((1, 4, 8, 100))
    kinds: list[Callable[[], bytes]] = [
        lambda: data[:at],
        lambda: data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :],
        lambda: data[:at] + draw.choice((b"\xff", b"\x00", b"\x7f")) * size + data[at + size :],
        lambda: data[:at] + struct.pack("<Q", draw.choice((0, 2**31, 2**63, 2**64 - 1))) + data[at + 8 :],
        lambda: data[:at] + draw.randbytes(size) + data[at:],
        lambda: data[:at] + data[at + size :],
    ]
    return draw.choice(kinds)()


def try_damage(place: Path, count: int, seed: int) -> int:
    """Damage one random file at a time. Return how often the import was refused."""
    draw = random.Random(seed)
    write_npz(place / "npz", *write_folder(place / "npz"))
    shutil.copytree(GOLDEN, place / "bin")
    paths = [place / "bin" / MODEL, place / "bin" / SPM, place / "bin" / LEX, place / "npz/model.npz"]
    files = {path: path.read_bytes() for path in paths}
    refused = 0
    for path in draw.choices(paths, k=count):
        path.write_bytes(damaged(files[path], draw))
        refused += is_refused(path.parent, place / "ours")
        path.write_bytes(files[path])
    return refused


def test_damaged_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    assert try_damage(tmp_path, 150, 1) > 75


@pytest.mark.slow
def test_many_damaged_files(tmp_path: Path) -> None:
    assert try_damage(tmp_path, 5_000, 2) > 2_500


HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}"


@pytest.mark.parametrize("header", [b"{'descr': '<f4', 'shape': (2,", b"{'descr': 1}", b"\xff", b"print(1)", HUGE])
def test_a_damaged_header_of_an_array_is_refused(tmp_path: Path, header: bytes) -> None:
    folder = tmp_path / "npz"
    write_folder(folder)
    with zipfile.ZipFile(folder / "model.npz", "w") as archive:
        archive.writestr("Wemb.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(ModelError, match="an array"):
        import_model(str(folder), tmp_path / "ours")


@pytest.mark.parametrize("piece", [b"\x08\x05", b"\x0a\x01a\x15\x00", b"\x0a\x01a\x10\x05", b"", b"\x0b\x01"])
def test_a_piece_whose_fields_have_other_types_is_refused(tmp_path: Path, piece: bytes) -> None:
    folder = shutil.copytree(GOLDEN, tmp_path / "broken")
    (folder / SPM).write_bytes(b"\x0a" + bytes([len(piece)]) + piece + (GOLDEN / SPM).read_bytes())
    with pytest.raises(ModelError, match=f"{SPM} cannot be read"):
        import_model(str(folder), tmp_path / "ours")


ABSURD = {
    "items": (8, 2**40, "items in"),
    "a name": (16, 2**40, "a name of"),
    "axes": (32, 2**40, "axes"),
    "data": (40, 2**62, "bytes"),
}


@pytest.mark.parametrize("what", ABSURD)
def test_absurd_sizes_are_refused_before_memory_is_allocated(tmp_path: Path, what: str) -> None:
    at, number, says = ABSURD[what]
    folder = shutil.copytree(GOLDEN, tmp_path / "broken")
    data = bytearray((GOLDEN / MODEL).read_bytes())
    data[at : at + 8] = struct.pack("<Q", number)
    (folder / MODEL).write_bytes(data)
    with pytest.raises(ModelError, match=says):
        import_model(str(folder), tmp_path / "ours")


# --- SentencePiece without its library --------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "settings",
    [
        {"normalization_rule_name": "nmt_nfkc"},
        {"normalization_rule_name": "nfkc_cf", "byte_fallback": True, "pieces": 500},
        {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False},
        {"user_defined_symbols": "__source__,ⓐ,the", "split_by_whitespace": False},
    ],
    ids=lambda settings: ",".join(settings),
)
def test_texts_are_split_as_the_library_splits_them(settings: dict[str, object], every: int) -> None:
    """Compare the pieces and offsets of 2,500 or 10,000 lines from all of Unicode, and some decoded texts."""
    import sentencepiece

    proto = sentence_piece_model(ENGLISH, **{"pieces": 170, **settings})
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    names = [library.id_to_piece(i) for i in range(library.get_piece_size())]
    ours = SentencePieces(proto, names, names.index("<unk>"))
    lines = [
        *random_unicode(10_000)[::every],
        *ENGLISH,
        *SPANISH,
        "",
        " ",
        "......",
        "__source__the__source__  theⓐ",
        "</s> <unk>",
    ]
    for line in lines:
        expected = library.encode(line, return_type="offset_mapping")
        found = ours.encode(line)
        assert found.tokens == list(expected["pieces"]), line
        assert ours.normalize_str(line) == library.normalize(line)
        if not settings.get("byte_fallback"):  # the library assigns a character's offset only to its last byte
            assert found.offsets == [tuple(place) for place in expected["offsets"]], line
    for line in lines[-400:]:
        ids = [i for i in ours.encode(line).ids if names[i] != "<unk>"]
        assert ours.decode_batch([ids])[0] == library.decode(ids).strip()


def test_a_rule_that_grows_a_text_without_bound_is_refused() -> None:
    # A double-array trie with the single key `a`, whose value is 0.
    units = [0] * 256
    units[0] = 1 << 10
    units[1 ^ ord("a")] = ord("a") | 1 << 8 | (1 ^ ord("a") ^ 200) << 10
    units[200] = 1 << 31
    trie = struct.pack("<256I", *units)
    for length in (3, LONGEST_REPLACEMENT + 1):
        rules = Normaliser(
            struct.pack("<I", len(trie)) + trie + b"x" * length + b"\0", frozenset(), prefix=True, squeeze=True
        )
        if length == 3:
            assert rules("bab")[0] == "▁bxxxb"
        else:
            with pytest.raises(ValueError, match="does not end"):
                rules("bab")

"""Export a model folder as a package for Argos Translate and LibreTranslate: a zip archive of one folder.

Argos tokenizes the source with a SentencePiece model, and joins the target pieces without one. An imported model
already has a SentencePiece model. Our BPE tokenizer is converted to one, in which earlier merges have higher scores.
SentencePiece merges two pieces whenever the result is a piece, whereas our tokenizer applies only learned merges, so a
few rare words are split differently. The conversion omits NFC normalisation and the escaping of special tokens.
"""

import zipfile
from io import BytesIO
from pathlib import Path

from vidrio._version import __version__
from vidrio.interop.foreign import CARD, NO_LANGUAGES, has_languages, not_exported
from vidrio.interop.to_ctranslate2 import engine_files
from vidrio.model.folder import read_config
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers

ARGOS = "1.9.0"  # version of the package format


def export_argos(folder: Path) -> bytes:
    """Return the contents of the package."""
    config, about = read_config(folder)
    source, target = read_tokenizers(folder, config)
    obstacles = {
        NO_LANGUAGES: not has_languages(about),
        "a token such as >>spa<< before every source": source.opening,
        "two tokenizers; Argos has one for both languages": source is not target and source.sentence_pieces is None,
        f"a {source.kind} tokenizer instead of BPE": source.sentence_pieces is None and source.kind != "bpe",
        "case tokens (⇧ and ⇪), which SentencePiece cannot produce": source.has_case_tokens,
    }
    if found := [name for name, is_there in obstacles.items() if is_there]:
        raise not_exported(folder, "Argos", found)
    metadata = {
        "package_version": __version__,
        "argos_version": ARGOS,
        **dict.fromkeys(("from_code", "from_name"), about.source_language),
        **dict.fromkeys(("to_code", "to_name"), about.target_language),
    }
    files = {
        "metadata.json": json_text(metadata).encode(),
        "sentencepiece.model": source.sentence_pieces.proto if source.sentence_pieces else sentence_piece_model(source),
        **{f"model/{name}": data for name, data in engine_files(folder).items()},
    }
    if (folder / CARD).is_file():
        files[CARD] = (folder / CARD).read_bytes()
    package = BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"translate-{about.source_language}_{about.target_language}/{name}", data)
    return package.getvalue()


def sentence_piece_model(tokenizer: Tokenizer) -> bytes:
    """Convert our BPE tokenizer to a SentencePiece model."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

    rank: dict[str, int] = {}
    for place, (left, right) in enumerate(tokenizer.ranks):
        rank.setdefault(left + right, place)
    special = tokenizer.special
    control = {special.pad, special.start, special.end}
    model = ModelProto()
    kinds = model.SentencePiece
    for i, piece in enumerate(tokenizer.vocabulary()):
        kind = kinds.NORMAL
        if i == special.unk:
            kind = kinds.UNKNOWN
        elif i in control:
            kind = kinds.CONTROL
        elif i in tokenizer.byte_ids:
            kind = kinds.BYTE
        model.pieces.add(piece=piece, score=-rank.get(piece, len(rank)), type=kind)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.vocab_size, trainer.byte_fallback = trainer.BPE, len(model.pieces), True
    normalizer.name, normalizer.add_dummy_prefix, normalizer.remove_extra_whitespaces = "identity", True, False
    return model.SerializeToString()

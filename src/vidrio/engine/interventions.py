"""Encode interventions as int32 words, the format that `interventions.c` reads."""

from array import array

from vidrio.errors import InputError
from vidrio.hypothesis import HeadOff, Hidden, Interventions
from vidrio.model.config import ModelConfig

HIDE, HEAD_OFF, SET_ROW = range(3)


def as_words(config: ModelConfig, interventions: Interventions) -> bytes:
    if not interventions:
        return b""
    words = array("i")
    for row in {one.row for one in interventions if isinstance(one, Hidden)}:
        words.extend((HIDE, 0, row))
    places = {name: number for number, name in enumerate(places_of(config))}
    for one in interventions:
        if isinstance(one, Hidden):
            continue
        place = one.sub_layer if isinstance(one, HeadOff) else one.place
        if place not in places:
            raise InputError(f"there is no sub-layer {place!r}", found=", ".join(places))
        if isinstance(one, HeadOff):
            words.extend((HEAD_OFF, places[place], one.head))
            continue
        if len(one.values) != config.d_model:
            raise InputError(
                f"a row of this model does not have {len(one.values)} numbers", found=f"d_model {config.d_model}"
            )
        words.extend((SET_ROW, places[place], one.row))
        words.frombytes(array("f", one.values).tobytes())
    return words.tobytes()


def places_of(config: ModelConfig) -> list[str]:
    """Return the names of the stacks' inputs and of all sub-layers, in the order of the forward pass."""
    cell = "ssru" if config.decoder_cell == "ssru" else "self"
    encoder = ["enc.in", *(f"enc.{n}.{part}" for n in range(config.n_encoder_layers) for part in ("self", "ffn"))]
    decoder = [f"dec.{n}.{part}" for n in range(config.n_decoder_layers) for part in (cell, "cross", "ffn")]
    return encoder * config.has_encoder + ["dec.in", *decoder] * config.has_decoder

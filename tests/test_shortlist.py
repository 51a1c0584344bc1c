"""Test shortlists, which limit the tokens of a translation: reading Marian's file, and searching with a shortlist."""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import vidrio
from small_models import random_sources, write_model
from vidrio.cli import main
from vidrio.engine.engine import Engine
from vidrio.engine.library import WISH
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Options
from vidrio.interop.convert import import_model
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config
from vidrio.model.shortlist import FILE, HEADER, folder_shortlist

GOLDEN = Path(__file__).parent / "golden/marian"
LEX = GOLDEN / "lex.50.50.enes.s2t.bin"
TEXTS = ["The old teacher finds the city.", "Green mountain, quiet letter!", "240 people saw it."]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "ours"
    import_model(str(GOLDEN), folder)
    return folder


def lists() -> tuple[int, list[list[int]]]:
    """Return the number of frequent tokens and the list for each token, read with NumPy."""
    data = LEX.read_bytes()
    _, _, always, _, n_offsets, _ = HEADER.unpack_from(data)
    offsets = np.frombuffer(data, "<u8", n_offsets, HEADER.size).tolist()
    words = np.frombuffer(data, "<u4", -1, HEADER.size + 8 * n_offsets).tolist()
    return always, [words[a:b] for a, b in pairwise(offsets)]


def test_a_sentence_gets_the_frequent_tokens_the_lists_of_its_own_and_itself(imported: Path) -> None:
    config, _ = read_config(imported)
    always, of_token = lists()
    source = [9, 70, 77, 70, 0]
    for copies in (True, False):
        shortlist = folder_shortlist(imported, config, copies)
        assert shortlist
        expected = {*range(always), *(word for i in source for word in of_token[i]), *(source if copies else ())}
        assert shortlist.of(source) == sorted(expected)


def test_a_translation_consists_of_listed_tokens(imported: Path) -> None:
    translator = vidrio.load(imported, shortlist=True)
    assert translator.shortlist
    found = [sentence for of in translator.translate(TEXTS) for sentence in of.sentences]
    for sentence in found:
        source = [*translator.source.encode(sentence.given), translator.config.special.end]
        assert set(sentence.best.ids) <= set(translator.shortlist.of(source))
    free = [sentence for of in vidrio.load(imported).translate(TEXTS) for sentence in of.sentences]
    assert [s.best.ids for s in found] != [s.best.ids for s in free]


def test_the_command_takes_the_option(imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "-m", str(imported), "--shortlist", TEXTS[0]]) == 0
    assert capsys.readouterr().out == f"{vidrio.load(imported, shortlist=True).translate(TEXTS[0]).text}\n"


def test_a_model_without_a_shortlist_chooses_among_all_tokens(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    assert vidrio.load(tmp_path / "model", shortlist=True).shortlist is None


DAMAGE = {
    "cut": lambda data: data[:-3],
    "magic": lambda data: b"\0" + data[1:],
    "order": lambda data: data[: HEADER.size + 8] + b"\xff\xff" + data[HEADER.size + 10 :],
    "vocabulary": lambda data: data[:-4] + b"\xff\xff\xff\x7f",
    "frequent": lambda data: data[:16] + b"\xff\xff\xff\x7f" + data[20:],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_shortlist_is_refused(imported: Path, tmp_path: Path, kind: str) -> None:
    folder = shutil.copytree(imported, tmp_path / "broken")
    (folder / FILE).write_bytes(DAMAGE[kind](LEX.read_bytes()))
    with pytest.raises(ModelError, match=r"shortlist\.bin is damaged"):
        vidrio.load(folder, shortlist=True)
    assert vidrio.load(folder).translate("city").text


# --- the engine -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["auto", "wasm"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, ModelConfig]:
    folder = tmp_path_factory.mktemp("model") / "model"
    config = write_model(folder, ends=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WISH, request.param)
        return Engine.load(folder, config, workers=2), config


def test_a_list_of_all_tokens_changes_nothing(engine: tuple[Engine, ModelConfig]) -> None:
    of, config = engine
    sources, options = random_sources(config, 40), Options(beam=3, max_length=20)
    all_tokens = [range(config.target_vocabulary)] * 40
    found = of.search(sources, options, shortlists=all_tokens)
    assert [h[0][:5] for h in found] == [h[0][:5] for h in of.search(sources, options)]


def test_neighbours_with_and_without_lists_do_not_matter(engine: tuple[Engine, ModelConfig]) -> None:
    of, config = engine
    sources, options = random_sources(config, 60), Options(beam=2, n_best=2, max_length=20)
    shortlists = [sorted({config.special.end, *range(n % 7, 27, 1 + n % 5)}) if n % 3 else () for n in range(60)]
    together = of.search(sources, options, shortlists=shortlists)
    alone = [of.search([s], options, shortlists=[t])[0] for s, t in zip(sources, shortlists, strict=True)]
    assert [[h[:5] for h in some] for some in together] == [[h[:5] for h in some] for some in alone]


@pytest.mark.parametrize("wrong", [[5, 4], [5, 5], [-1, 5], [5, 10_000]], ids=str)
def test_a_list_that_is_none_is_refused(engine: tuple[Engine, ModelConfig], wrong: list[int]) -> None:
    of, config = engine
    sources = random_sources(config, 3)
    with pytest.raises(InputError, match="do not fit this model"):
        of.search(sources, Options(max_length=20), shortlists=[(), wrong, ()])
    assert len(of.search(sources, Options(max_length=20))) == 3

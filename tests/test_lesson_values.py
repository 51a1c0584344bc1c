"""A lesson's values: written to the last bit, read back, and refused with every reason at once."""

import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidrio.errors import LessonError
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons import values_file
from vidrio.lessons.values import Values, of_a_model
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.folder import read_config
from vidrio.model.parameters import parameter_specs, random_parameters

WORDS = ("<pad>", "<unk>", "SOS", "EOS", "hello", "hola", "world.wide", 'a"b')


def same(a: Values, b: Values) -> None:
    """Equal to the last bit."""
    plain = {"parameters": {}, "generation_VD": None}
    assert replace(a, **plain) == replace(b, **plain)
    assert set(a.parameters) == set(b.parameters)
    for name in a.parameters:
        assert a.parameters[name].tobytes() == b.parameters[name].tobytes(), name
    assert (a.generation_VD is None) == (b.generation_VD is None)
    if a.generation_VD is not None and b.generation_VD is not None:
        assert a.generation_VD.tobytes() == b.generation_VD.tobytes()


def some_values(**changes: object) -> Values:
    config = ModelConfig(
        **{
            "source_vocabulary": len(WORDS),
            "target_vocabulary": len(WORDS),
            **{"d_model": 4, "n_heads": 2, "d_head": 3, "d_ff": 5, "n_encoder_layers": 1, "n_decoder_layers": 2},
            **{"max_positions": 7, "special": SpecialIds()},
            **changes,
        }
    )
    return Values(
        about='Made for a test: \\ "quoted", ñ, \x7f, and\nanother line.',
        sentence="hello hola",
        vocabulary=WORDS,
        config=config,
        score_divisor=1.7,
        parameters=random_parameters(config, np.random.default_rng(1)),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tying": "none", "output_bias": True},
        {"tying": "output", "attention_bias": True},
        {"positions": "learned", "norm": "pre", "tying": "none"},
        {"scale_embeddings": False, "source_end": False, "activation": "gelu", "norm_epsilon": 1e-12},
    ],
)
def test_what_is_written_is_read_back_to_the_last_bit(changes: dict[str, object], tmp_path: Path) -> None:
    values = some_values(**changes)
    values_file.write(tmp_path / "my.toml", values)
    same(values_file.read(tmp_path / "my.toml", None), values)
    same(values_file.read(tmp_path / "my.toml", values_file.of_the_post()), values)


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_every_finite_number_survives(row: list[float]) -> None:
    values = some_values(tying="none")
    parameters = dict(values.parameters)
    parameters["tgt.embed"] = np.array([row] * len(WORDS))
    parameters["enc.0.ffn.b2"] = np.array(row)
    values = replace(values, parameters=parameters)
    text = "\n".join(values_file.lines(values)).encode()
    same(values_file.parse(text, None, where="text"), values)


def test_the_lessons_own_values_are_such_a_file(tmp_path: Path) -> None:
    own = resources.files("vidrio.lessons").joinpath("data/random-transformer.toml").read_bytes()
    values_file.write(tmp_path / "own.toml", values_file.of_the_post())
    assert (tmp_path / "own.toml").read_bytes() == own


def test_the_drawn_numbers_come_from_the_stated_generator(tmp_path: Path) -> None:
    """True of the pinned NumPy; the file keeps the numbers, whatever a later one draws."""
    given_file = tmp_path / "given.toml"
    given_file.write_bytes(resources.files("vidrio.lessons").joinpath("data/given.toml").read_bytes())
    same(values_file.read(given_file, None), values_file.of_the_post())
    values = values_file.of_the_post()
    first = np.random.Generator(np.random.PCG64(2017)).standard_normal(40 + 40 + 3 * 24 + 24 + 32)
    assert values.parameters["enc.0.ffn.W1"].ravel().tolist() == first[-32:].tolist()
    assert set(values.parameters["dec.3.cross.norm.gain"].tolist()) == {1.0}
    assert set(values.parameters["dec.3.cross.norm.bias"].tolist()) == {0.0}


def read(text: str, tmp_path: Path) -> Values:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    return values_file.read(path, values_file.of_the_post())


def test_what_is_not_named_is_the_lessons(tmp_path: Path) -> None:
    own = values_file.of_the_post()
    same(read("", tmp_path), replace(own, about="Your own values."))
    changed = read('sentence = "world"\n[enc.0.self]\nWQ.h1 = [[1,2,3],[4,5,6],[7,8,9],[10,11,12.5]]', tmp_path)
    assert changed.source_ids == [2]
    assert changed.parameters["enc.0.self.WQ"][1].tolist()[3] == [10, 11, 12.5]
    assert np.array_equal(changed.parameters["enc.0.self.WQ"][0], own.parameters["enc.0.self.WQ"][0])
    assert np.array_equal(changed.parameters["dec.5.ffn.W2"], own.parameters["dec.5.ffn.W2"])


def test_own_embeddings_serve_everywhere(tmp_path: Path) -> None:
    own = values_file.of_the_post()
    assert own.generation_VD is not None
    changed = read("[embeddings]\nhello = [0.5, 0.25, 0, -1]", tmp_path)
    assert changed.generation_VD is None
    for table in ("src.embed", "tgt.embed"):
        assert changed.parameters[table][0].tolist() == [0.5, 0.25, 0, -1]
        assert np.array_equal(changed.parameters[table][1:], own.parameters[table][1:])
    apart = read("[tgt.embed]\nhola = [9, 9, 9, 9]", tmp_path)
    assert np.array_equal(apart.parameters["src.embed"], own.parameters["src.embed"])
    assert apart.parameters["tgt.embed"][8].tolist() == [9, 9, 9, 9]


def test_a_whole_parameter_may_be_given_for_all_heads_of_other_sizes_when_the_rest_is_drawn(tmp_path: Path) -> None:
    values = read(
        "draw = 5\n[config]\nn_heads = 3\nd_head = 2\nn_decoder_layers = 1\n[enc.0.ffn]\nb2=[1,2,3,4]", tmp_path
    )
    assert values.parameters["enc.0.self.WQ"].shape == (3, 4, 2)
    assert values.parameters["enc.0.ffn.b2"].tolist() == [1, 2, 3, 4]
    assert values.score_divisor == 2**0.5
    prob = translate_forced(values.machine(), values.source_ids, [values.config.special.start])
    assert prob.shape == (1, 10)
    again = read("draw = 5\n[config]\nn_heads = 3\nd_head = 2\nn_decoder_layers = 1", tmp_path)
    assert np.array_equal(values.parameters["dec.0.ffn.W2"], again.parameters["dec.0.ffn.W2"])


def test_other_words(tmp_path: Path) -> None:
    values = read(
        'sentence = "good day"\nvocabulary = ["SOS", "EOS", "good", "day"]\ndraw = 1\n[embeddings]\ngood=[1,0,0,0]',
        tmp_path,
    )
    assert values.source_ids == [2, 3]
    assert values.config.special == SpecialIds(pad=-1, unk=-1, start=0, end=1)


MATRIX = "[[1,2,3],[4,5,6],[7,8,9],[1,1,1]]"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[enc.0.self]\nWQ.h0 = [[1, 2], [3, 4]]", "enc.0.self.WQ.h0: expected 4 × 3 numbers, found 2 × 2"),
        ("[enc.0.self]\nWQ.h0 = [[1, 2, 3], [3, 4]]", "expected 4 × 3 numbers, found rows of different lengths: 3, 2"),
        ("[enc.0.self]\nWQ.h0 = []", "expected 4 × 3 numbers, found an empty list"),
        ("[enc.0.self]\nWQ.h0 = 7", "expected 4 × 3 numbers, found one number, not a list"),
        ('[enc.0.self]\nWQ.h0 = "x"', 'expected 4 × 3 numbers, found a text: "x"'),
        ("[enc.0.self]\nWQ.h0 = [[1,2,3],[4,5,6],[7,8,9],[1,1,true]]", "4 × 3 numbers, found true or false: true"),
        ("[enc.0.ffn]\nb2 = [1, nan, 3, 4]", "enc.0.ffn.b2: expected 4 numbers, found NaN or infinity"),
        ("[enc.0.ffn]\nb2 = [1, inf, 3, 4]", "enc.0.ffn.b2: expected 4 numbers, found NaN or infinity"),
        (f"[enc.0.self]\nW_Q.h0 = {MATRIX}", ".W_Q.h0: not a number of this model; nearest: enc.0.self.WQ.h0"),
        (f"[enc.0.self]\nWQ.h2 = {MATRIX}", ".WQ.h2: not a number of this model; nearest: enc.0.self.WQ.h0"),
        ("[enc.0.self.norm]\ngamma = [1,1,1,1]", ".gamma: not a number of this model; nearest: enc.0.self.norm.gain"),
        ("[enc.6.ffn]\nb2 = [1,1,1,1]", "enc.6.ffn.b2: not a number of this model"),
        ("W1 = [[1]]", "W1: not a name of this file; nearest: enc.0.ffn.W1"),
        ("sentense = 'x'", "sentense: not a name of this file; nearest: sentence"),
        ("sentence = 'good bye'", "sentence: the vocabulary does not hold 'good'"),
        ("sentence = ''", "sentence: the sentence has no words"),
        ("sentence = 3", "sentence: expected a text, found a whole number: 3"),
        (f"sentence = '{'hello ' * 65}'", "sentence: expected at most 64 tokens, found 65"),
        ("[embeddings]\nhello = [1, 2]", "embeddings: hello: expected 4 numbers, found 2"),
        ("[embeddings]\nhallo = [1, 2, 3, 4]", "embeddings: hallo: not a name of this file; nearest: hello"),
        ("embeddings = 3", "embeddings: expected a table [embeddings], found a whole number: 3"),
        ("[generation.embeddings]\nhello = [1, 2, 3, 4]", "generation.embeddings: mundo is missing: expected 4"),
        ("vocabulary = ['SOS', 'EOS', 'x']", "src.embed[x] is missing: expected 4 numbers"),
        ("vocabulary = ['SOS', 'EOS', 'a', 'a']", "vocabulary: 'a' is in it twice"),
        ("vocabulary = ['SOS', 'EOS', 'a b']", "vocabulary: expected words without spaces"),
        ("vocabulary = ['x']", "vocabulary: expected 2 to 1000 words, found 1"),
        ("start = 'HOLA'", "start: 'HOLA' is not in the vocabulary; nearest: hola"),
        ("start = 'EOS'", "expected different words"),
        ("[config]\nn_heads = 3", "enc.0.self.WQ.h2 is missing: expected 4 × 3 numbers"),
        ("[config]\nheads = 3", "config.heads: not a name of this file; nearest: n_heads"),
        ("[config]\nn_heads = 0", "config.n_heads: expected 1 to 16, found 0"),
        ("[config]\nn_heads = 1000000000", "config.n_heads: expected 1 to 16, found 1000000000"),
        ("[config]\nn_heads = 2.0", "config.n_heads: expected a whole number, found a number: 2.0"),
        ("[config]\nn_heads = true", "config.n_heads: expected a whole number, found true or false: true"),
        ("[config]\nd_model = 5", "d_model is 5: sine and cosine come in pairs"),
        ("[config]\nnorm = 'none'", "norm is 'none', not one of post, pre"),
        ("[config]\nscore_divisor = 0", "config.score_divisor: expected a number above 0"),
        ("[config]\nscore_divisor = nan", "config.score_divisor: expected a number above 0"),
        ("[config]\nnorm_epsilon = -1.0", "norm_epsilon is -1.0, not above 0"),
        ("draw = -1", "draw: expected a whole number from 0 on"),
        ("draw = 'dice'", "draw: expected a whole number"),
        ("= 3", "is not TOML"),
        (f"draw = {'9' * 5000}", "is not TOML"),
        ("x = " + "[" * 5000, "is not TOML"),
        (f"[enc.0.ffn]\nb2 = [1, {'9' * 400}, 3, 4]", "enc.0.ffn.b2: expected 4 numbers, found NaN or infinity"),
        (f"[config]\nscore_divisor = {'9' * 400}", "config.score_divisor: expected a number above 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_was_expected_and_found(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(LessonError) as caught:
        read(text, tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path / "my.toml") in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = "colour = 1\nsentence = 3\n[enc.0.self]\nWQ.h0 = [[1]]\nWX = 3\n[dec.0.cross]\nWO = [[nan]]\n"
    with pytest.raises(LessonError) as caught:
        read(text, tmp_path)
    for name in ("colour", "sentence", "enc.0.self.WQ.h0", "enc.0.self.WX", "dec.0.cross.WO"):
        assert f"{name}: " in str(caught.value)


def test_very_many_problems_are_counted(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match=r"and \d+ more"):
        read("[config]\nd_model = 6", tmp_path)


def test_a_file_too_large_or_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_file, "LARGEST_FILE", 100)
    with pytest.raises(LessonError, match="too large"):
        read("#" * 101, tmp_path)
    with pytest.raises(LessonError, match="No such file"):
        values_file.read(tmp_path / "nothing.toml", None)
    with pytest.raises(LessonError, match="directory"):
        values_file.read(tmp_path, None)


def test_binary_rubbish_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(LessonError, match="is not UTF-8 text") as caught:
        values_file.read(path, None)
    assert "byte 0x80 in line 2" in str(caught.value)


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    """With the mark that some editors put before UTF-8, and their line ends."""
    path = tmp_path / "my.toml"
    path.write_bytes(b'\xef\xbb\xbfsentence = "world"\r\n')
    assert values_file.read(path, values_file.of_the_post()).source_ids == [2]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="cannot be written"):
        values_file.write(tmp_path, some_values(), force=True)


def test_a_file_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    values_file.write(path, some_values())
    before = path.read_bytes()
    with pytest.raises(LessonError, match="is there already"):
        values_file.write(path, values_file.of_the_post())
    assert path.read_bytes() == before
    values_file.write(path, values_file.of_the_post(), force=True)
    assert tomllib.loads(path.read_text("utf-8"))["sentence"] == "Hello World"


@pytest.mark.parametrize("size", [1e-320, 1e160, 1.7e308])
def test_numbers_of_any_size_can_be_walked_with(size: float, tmp_path: Path) -> None:
    from vidrio.lessons.runs import Lesson
    from vidrio.lessons.step import steps
    from vidrio.lessons.walk_report import step_text

    row = [size, -size, size, size / 2]
    text = f"[embeddings]\nhello = {row}\n[enc.0.self]\nWQ.h0 = {[[size] * 3] * 4}\nnorm.gain = {row}\n"
    text += f"[out]\nb = {[size] * 10}"
    for mode in ("printed", "corrected"):
        lesson = Lesson(mode, read(text, tmp_path), own=True)
        every = steps(lesson.values.config)
        for n, step in enumerate(every, 1):
            assert step.title in step_text(lesson, every, n, 4, "AGAIN")


def test_a_word_of_any_length_is_cut(tmp_path: Path) -> None:
    from vidrio.lessons.runs import Lesson
    from vidrio.lessons.step import steps
    from vidrio.lessons.walk_report import step_text

    lesson = Lesson(
        "corrected", read(f'draw=1\nvocabulary=["SOS","EOS","world","{"x" * 100_000}"]\nsentence="world"', tmp_path)
    )
    every = steps(lesson.values.config)
    for n in (1, 37, 38, 40, 41):
        assert len(step_text(lesson, every, n, 4, "AGAIN")) < 5000


def test_values_as_a_model_folder_and_back(tmp_path: Path) -> None:
    values = replace(values_file.of_the_post(), generation_VD=None)
    values.write_model(tmp_path / "model")
    back = of_a_model(tmp_path / "model")
    same(replace(back, about="", sentence=""), replace(values, about="", sentence=""))
    assert back.tokenizer.encode("Hello World") == values.source_ids
    config, about = read_config(tmp_path / "model")
    assert (config.decoding.beam, config.decoding.max_length) == (1, 12)
    assert about.provenance == {"about": values.about}


def test_a_model_without_words_cannot_be_walked_through(tmp_path: Path) -> None:
    from vidrio.model.folder import About, write_config, write_parameters
    from vidrio.text.tokens.tokenizer import Tokenizer

    tokenizer = Tokenizer.learn(["hello world"] * 3, "bpe", 400)
    config = ModelConfig(
        source_vocabulary=tokenizer.size, target_vocabulary=tokenizer.size, d_model=4, special=tokenizer.special
    )
    write_parameters(tmp_path, {name: np.zeros(spec.shape) for name, spec in parameter_specs(config).items()})
    tokenizer.save(tmp_path / "tokenizer.json")
    write_config(tmp_path, config, About())
    with pytest.raises(LessonError, match="bpe tokens"):
        of_a_model(tmp_path)

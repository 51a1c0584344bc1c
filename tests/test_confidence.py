"""How far a translation can be trusted: curves that rise, right figures, and a file that is not believed blindly."""

import json
import os
import pty
import resource
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vidrio
from forked import run_vidrio
from small_run import PAIRS, train_small
from vidrio.commands._doubts import fitting
from vidrio.errors import DataError, ModelError
from vidrio.fast.export import export
from vidrio.translate import confidence as module
from vidrio.translate.confidence import (
    Curve,
    auc,
    calibrated,
    calibration_error,
    correlation,
    fit,
    in_reference,
    ranks,
    sentence_feature,
    word_features,
)

# --- the curves and the figures ---------------------------------------------------------------------------------------

unit = st.floats(0, 1, allow_nan=False)


@given(st.lists(st.tuples(unit, unit), min_size=1, max_size=30))
def test_a_curve_never_falls_and_stays_between_0_and_1(pairs):
    x_N, truth_N = np.array(pairs).T
    curve = fit(x_N, truth_N)
    found = [curve(x) for x in np.linspace(0, 1, 21)]
    assert all(0 <= value <= 1 for value in found)
    assert found == sorted(found)
    # Calibrated on what it was fitted to; the prior pulls it a little, the more the fewer there are.
    assert np.mean([curve(x) for x in x_N]) == pytest.approx(truth_N.mean(), abs=0.04)


def test_a_curve_is_found_again():
    true = Curve(-2.0, 4.5)
    x_N = np.random.default_rng(0).random(20_000)
    truth_N = (np.random.default_rng(1).random(20_000) < [true(x) for x in x_N]).astype(float)
    found = fit(x_N, truth_N)
    assert (found.bias, found.slope) == pytest.approx((true.bias, true.slope), abs=0.15)
    assert fit(x_N, 1 - truth_N).slope == 0  # what falls is made flat
    assert fit(x_N, np.ones(20_000))(0.5) > 0.999


def test_a_curve_has_no_place_where_it_overflows():
    assert (Curve(-9e9, 1)(0.0), Curve(9e9, 1)(1.0)) == (0.0, 1.0)


def test_figures_by_hand():
    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert correlation(a, 2 * a + 1) == pytest.approx(1)
    assert correlation(a, -a) == pytest.approx(-1)
    assert correlation(a, np.ones(4)) == 0
    assert ranks(np.array([5.0, 1.0, 5.0, 7.0])).tolist() == [2.5, 1, 2.5, 4]
    bad = np.array([True, False, True, False])
    assert auc(a, bad) == pytest.approx(3 / 4)  # of the four pairs, (3, 2) is the wrong way round
    assert auc(np.ones(4), bad) == pytest.approx(1 / 2)
    assert auc(a, np.zeros(4, dtype=bool)) is None
    assert calibration_error(np.full(20, 0.5), np.repeat([0.0, 1.0], 10)) == pytest.approx(0.5)
    assert calibration_error(np.tile([0.2, 0.8], 50), np.tile([0.2, 0.8], 50)) == pytest.approx(0)


@given(st.lists(st.tuples(unit, st.booleans()), min_size=2, max_size=20))
def test_auc_counts_pairs(found):
    good = [x for x, bad in found if not bad]
    worse = [x for x, bad in found if bad]
    wins = [(b < g) + (b == g) / 2 for b in worse for g in good]
    told = auc(np.array([x for x, _ in found]), np.array([bad for _, bad in found]))
    assert told == (pytest.approx(np.mean(wins)) if wins else None)


def test_words_and_their_probabilities():
    tokens = [(0, 3), (3, 6), (6, 7), (7, 11)]  # "mun" "do " … of a word in two tokens, a comma, " mar"
    found = word_features("mundo!, mar", [(0, 3), (3, 5), (5, 7), (7, 11)], np.log([0.5, 0.5, 0.9, 0.8, 0.1]).tolist())
    assert [(word.text, word.start, word.end) for word, _ in found] == [("mundo", 0, 5), ("mar", 8, 11)]
    assert [probability for _, probability in found] == pytest.approx([0.25, 0.8])
    assert len(tokens) == 4
    assert sentence_feature(np.log([0.5, 1.0]).tolist()) == pytest.approx(0.75)
    assert sentence_feature([]) == 0


def test_a_word_counts_as_often_as_the_reference_has_it():
    assert in_reference(["El", "gato", "el", "el"], "el perro y el gato") == [True, True, True, False]


def test_too_few_pairs_are_refused():
    with pytest.raises(DataError, match="3 pairs that are one sentence each"):
        calibrated([(0.5, 0.5)] * 3, [[(0.5, True)]] * 3, "", {})
    with pytest.raises(DataError, match="no words"):
        calibrated([(0.5, 0.5)] * 30, [[]] * 30, "", {})


# --- a trained model --------------------------------------------------------------------------------------------------


# What the model has learned, and the same with words in their places that nobody has ever told it.
UNCLEAR = [(f"{source.split()[0]} {'zebra ' * (len(source.split()) - 1)}", target) for source, target in PAIRS]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small trained one, calibrated by the command."""
    folder = tmp_path_factory.mktemp("run")
    trained = train_small(folder)
    export(trained, quantisation="float32")
    pairs = [pair for both in zip(PAIRS, UNCLEAR, strict=True) for pair in (*both, *reversed(both))]
    for n, name in enumerate(("dev.en", "dev.es")):
        (folder / name).write_text("".join(f"{pair[n]}\n" for pair in pairs), encoding="utf-8")
    arguments = ["--src", str(folder / "dev.en"), "--ref", str(folder / "dev.es"), "--calibrate"]
    done = run("evaluate", str(trained), *arguments)
    assert done.returncode == 0, done.stderr
    assert f"written to {trained / 'confidence.json'}" in done.stderr
    assert "calibration error" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    return trained


def run(*arguments, stdin=""):
    return run_vidrio(*arguments, stdin=stdin)


def test_the_file_tells_what_was_measured_and_that_it_predicts(model):
    data = json.loads((model / "confidence.json").read_text())
    assert data["sentences"]["count"] == 200
    assert data["measured_on"]["lines"] == 400
    assert data["measured_on"]["source"] == "dev.en"
    assert data["sentences"]["pearson"] > 0.3
    assert data["words"]["auc"] > 0.7
    assert module.read(model).told().startswith("confidence predicts chrF with r = ")


def test_confidence_is_higher_where_the_translation_is_better(model):
    translator = vidrio.load(model)
    clear, unclear = (translator.translate([source for source, _ in pairs]) for pairs in (PAIRS, UNCLEAR))
    assert np.mean([one.confidence for one in clear]) > np.mean([one.confidence for one in unclear]) + 0.1
    for one in (*clear, *unclear):
        assert 0 <= one.confidence <= 1
        assert [word.text for word in one.words] == one.text.split()
        assert all(one.text[word.start : word.end] == word.text for word in one.words)
        assert all(0 <= word.confidence <= 1 for word in one.words)


def test_both_engines_judge_alike(model):
    fast, glass = (
        vidrio.load(model, engine=engine).translate("the cat sees it. the dog") for engine in ("fast", "glass")
    )
    assert fast.text == glass.text
    assert fast.confidence == pytest.approx(glass.confidence, abs=1e-4)
    assert [w.confidence for w in fast.words] == pytest.approx([w.confidence for w in glass.words], abs=1e-4)


def test_what_is_only_copied_is_certain(model):
    found = vidrio.load(model).translate("  18.10 ")
    assert (found.confidence, found.words) == (1.0, ())


TEXT = "the cat sees a house\n\nthe child the bread two of my friend\n"


def test_the_command_leaves_the_translation_as_it_is_and_tells_on_stderr(model):
    plain = run("translate", "--model", str(model), stdin=TEXT)
    done = run("translate", "--model", str(model), "--confidence", stdin=TEXT)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    told, header, *rows = [line for line in done.stderr.splitlines() if "vocabulary" not in line]
    assert told == f"vidrio: {module.read(model).told()}"
    assert header.split()[:3] == ["line", "confidence", "to"]
    assert [int(row.split()[0]) for row in rows] == [1, 3]
    expected = [one.confidence for one in vidrio.load(model).stream(TEXT.splitlines()) if one.words]
    assert [float(row.split()[1]) for row in rows] == pytest.approx(expected, abs=0.006)
    assert max(map(len, done.stderr.splitlines())) <= 80 + len("vidrio: , AUC 0.00 for chrF below 0.4")


def test_rows_of_a_file_that_is_resumed_go_on_counting(model, tmp_path):
    (tmp_path / "in").write_text("the cat sees it\nthe dog has it\n" * 200)
    command = ["translate", "--model", str(model), "--confidence", "-i", str(tmp_path / "in")]
    first = run(*command).stdout.splitlines(keepends=True)[0]
    output = ["-o", str(tmp_path / "out")]
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (4096, 4096))  # as if the disk were full
    stopped = subprocess.run(
        [sys.executable, "-m", "vidrio", *command, *output], capture_output=True, timeout=60, preexec_fn=limit
    )
    assert stopped.returncode == 1
    (tmp_path / "out.part").write_text(first)
    done = run(*command, *output, "--resume")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].split()[0] == "400"


def test_json_has_it_for_each_sentence_and_word(model):
    source = "the cat sees ñ. the dog has it"
    done = run("translate", "--model", str(model), "--confidence", "--json", source)
    told = json.loads(done.stdout)
    found = vidrio.load(model).translate(source)
    raw = told["translation"].encode()
    listed = [word for sentence in told["sentences"] for word in sentence["words"]]
    assert [raw[slice(*word["bytes"])].decode() for word in listed] == [word["text"] for word in listed]
    assert [word["confidence"] for word in listed] == pytest.approx([word.confidence for word in found.words])
    assert all(0 <= sentence["confidence"] <= 1 for sentence in told["sentences"])
    plain = json.loads(run("translate", "--model", str(model), "--json", source).stdout)
    assert "confidence" not in plain["sentences"][0]
    assert plain["sentences"][0]["alignment"]
    line = json.loads(
        run("translate", "--model", str(model), "--confidence", "--jsonl", stdin='{"text": "it"}\n').stdout
    )
    assert set(line) == {"text", "translation", "confidence", "words"}


def on_a_terminal(*arguments, **environment):
    """What a terminal would be sent on stdout."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "vidrio", *arguments]
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env={**clean, **environment}) as process:
        os.close(theirs)
        sent = b""
        try:
            while more := os.read(ours, 4096):
                sent += more
        except OSError:
            pass  # how Linux says that the other side has closed
        process.wait(timeout=60)
    os.close(ours)
    return sent.decode().replace("\r\n", "\n")


def test_on_a_terminal_doubtful_words_are_underlined(model):
    source = "two books sees a child the world the bread"
    found = vidrio.load(model).translate(source)
    doubtful = [word.text for word in found.words if word.confidence < module.DOUBTFUL]
    assert doubtful
    arguments = ("translate", "--model", str(model), "--confidence", source)
    sent = on_a_terminal(*arguments, TERM="xterm")
    assert sent.count("\x1b[4m") == len(doubtful)
    assert f"\x1b[4m{doubtful[0]}\x1b[0m" in sent
    assert on_a_terminal(*arguments, TERM="dumb") == f"{found.text}\n"
    assert on_a_terminal(*arguments, TERM="xterm", NO_COLOR="1") == f"{found.text}\n"


def test_a_file_is_never_marked(model, tmp_path):
    source = "two books sees a child the world the bread"
    (tmp_path / "in").write_text(f"{source}\n")
    files = ("-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"))
    assert on_a_terminal("translate", "--model", str(model), "--confidence", *files, TERM="xterm") == ""
    assert (tmp_path / "out").read_text() == f"{vidrio.load(model).translate(source).text}\n"


def test_a_row_keeps_to_its_width():
    told = [f"palabra{n} 0.12" for n in range(30)]
    row = fitting("       1        0.25  ", told)
    assert len(row) <= 80
    assert row.endswith(" more")
    shown = row.count("palabra")
    assert row.endswith(f"{30 - shown} more")
    assert fitting("x  ", []) == "x"
    assert fitting("x  ", ["y" * 200]) == "x  1 more"


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_model_without_it_says_which_command_makes_one(call_vidrio):
    done = call_vidrio("translate", "--model", "lesson", "--confidence", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--calibrate" in done.stderr
    with pytest.raises(ModelError, match="does not tell how far it can be trusted"):
        _ = vidrio.load("lesson").translate("hello").confidence


def test_of_other_weights_it_is_not_believed(model, tmp_path):
    shutil.copytree(model, tmp_path / "other", ignore=shutil.ignore_patterns("run"))
    with (tmp_path / "other" / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelError, match=r"belongs to other weights\n  found: .*\n  do: make one"):
        module.read(tmp_path / "other")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("word"),
        lambda data: data.pop("weights"),
        lambda data: data.update(format=2),
        lambda data: data.update(more=1),
        lambda data: data.update(weights=None),
        lambda data: data["sentence"].update(slope=-1.0),
        lambda data: data["sentence"].update(slope="steep"),
        lambda data: data["sentence"].update(bias=float("nan")),
        lambda data: data["sentences"].update(pearson=None) or data["sentences"].pop("count"),
        lambda data: data.update(sentences=[]),
    ],
)
def test_a_damaged_file_is_refused(model, tmp_path, damage):
    data = json.loads((model / "confidence.json").read_text())
    damage(data)
    (tmp_path / "confidence.json").write_text(json.dumps(data))
    with pytest.raises(ModelError, match=r"confidence\.json cannot be used\n  found: .*\n  do: make one"):
        module.read(tmp_path)
    (tmp_path / "confidence.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        module.read(tmp_path)


def test_what_is_written_is_read(model, tmp_path):
    found = module.read(model)
    module.write(tmp_path, found)
    assert module.read(tmp_path) == found


@pytest.mark.parametrize("more", [("--against", "lesson"), ("-o", "out"), ("--ref", __file__)])
def test_calibrating_is_no_scoring(call_vidrio, more):
    done = call_vidrio("evaluate", "lesson", "--src", __file__, "--ref", __file__, "--calibrate", *more)
    assert done.returncode == 2
    assert "--calibrate takes one --ref" in done.stderr

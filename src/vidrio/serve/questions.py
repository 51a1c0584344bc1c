"""Answer the page's requests: traced sentences, values by address, and receipts of numbers.

The functions return plain data, which `vidrio serve` sends over HTTP (views.py). The standalone page calls the same
functions in the browser (site/). Each request contains everything that its response depends on.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from safetensors.numpy import save

from vidrio.errors import InputError
from vidrio.hypothesis import Sampling
from vidrio.look import history, intervention_views, interventions, run_data, why_word
from vidrio.look.receipt import copied, receipt_data
from vidrio.look.translated import translator_of
from vidrio.look.why_word import Why
from vidrio.serve.looking import Looking
from vidrio.serve.translating import Question

LARGEST_ANSWER = 32 << 20  # bytes


def machine(looking: Looking, q: Question) -> Any:
    """Return a model's quantities, in the order of the forward pass."""
    request = q.request(looking.default)
    glass = looking.run(request).look.model if q.changes else looking.loaded(request.model, q.numbers)
    engine = "Vidrio" if looking.translating.translator(request.model) else "glass"
    return run_data.machine_data(glass, request.model, engine)


def translate(looking: Looking, q: Question) -> Any:
    """Translate a text without tracing it."""
    return looking.translating.answer(q, looking.stopped)


def run(looking: Looking, q: Question) -> Any:
    """Trace a sentence. Return its tokens, the most probable tokens at each step, and the effects of any changes."""
    seen = looking.run(q.request(looking.default))
    of = seen.whole.sentences if seen.whole else ()
    sentences = [{"source": s.source, "given": s.given, "text": s.text} for s in of]
    return run_data.answer(seen.tried, q.text, sentences, q.sentence, seen.translation)


def search(looking: Looking, q: Question) -> Any:
    """Return every hypothesis that beam search considered, each with its outcome, and the result of greedy search."""
    own = q.request(looking.default)
    greedy = looking.searched(replace(own, beam=1))
    return {**looking.searched(own), "greedy": greedy["found"]}


def choose(looking: Looking, q: Question) -> Any:
    """Return the logits and probabilities of one step, and the effect of temperature, top-k and top-p."""
    sampling = Sampling(temperature=q.temperature, top_k=q.top_k, top_p=q.top_p)
    seen = looking.run(q.request(looking.default)).look
    if q.step >= len(seen.chosen_ids):
        raise InputError(f"there is no decoding step {q.step}", found=f"{len(seen.chosen_ids)} steps")
    return run_data.choosing_data(seen, q.step, sampling)


def why(looking: Looking, q: Question) -> Any:
    """Explain why a step, or the step that produced a word, chose its token over a rival: a sum that equals the
    difference between their logits."""
    return why_word.data(_why(looking, q))


def why_words(looking: Looking, q: Question) -> Any:
    """Return how deleting or hiding each source word affects a token and the translation."""
    why = _why(looking, q)
    hidden = interventions.each_word_hidden(why.seen, looking.stopped)  # raises an error if a model can't translate
    translator = looking.translating.translator(q.model or looking.default) or translator_of(why.seen.model)
    deleted = interventions.each_word_deleted(why.seen, translator, looking.stopped)
    return {
        "deleted": intervention_views.as_data(why, deleted),
        "hidden": intervention_views.as_data(why, hidden),
    }


def why_heads(looking: Looking, q: Question) -> Any:
    """Return how switching off each attention head affects a token and the translation."""
    why = _why(looking, q)
    return {"heads": intervention_views.as_data(why, interventions.each_head_off(why.seen, looking.stopped))}


def why_rows(looking: Looking, q: Question) -> Any:
    """Return how substituting each row from a run on another text changes the difference between two logits."""
    why = _why(looking, q)
    found = interventions.rows_patched(why.seen, why.decision, q.other, looking.stopped)
    return intervention_views.as_data(why, found)


def _why(looking: Looking, q: Question) -> Why:
    seen, rival = looking.run(q.request(looking.default)).look, q.rival or None
    return why_word.why_word(seen, q.word, rival) if q.word else why_word.why_step(seen, q.step, rival)


def tokens(looking: Looking, q: Question) -> Any:
    """Return every step of tokenisation, from the text to its tokens."""
    return run_data.tokenising_data(looking.run(q.request(looking.default)).look)


def tensors(looking: Looking, q: Question) -> bytes:
    """Return values by address, as a safetensors file."""
    trace = looking.run(q.request(looking.default)).trace
    wanted = [address for address in q.addresses if not q.if_there or run_data.holds(trace, address)]
    found = {address: run_data.array_at(trace, address) for address in wanted}
    if (size := sum(array.nbytes for array in found.values())) > LARGEST_ANSWER:
        limit = f"{size:,} bytes; at most {LARGEST_ANSWER:,} are sent"
        raise InputError("these are too many numbers", found=limit, do="ask for fewer quantities at a time")
    return save(found)


def positions(looking: Looking, q: Question) -> bytes:
    """Return the position table and its wavelengths."""
    return save(run_data.positions_at(looking.run(q.request(looking.default)).look.model.machine, q.address))


def receipt(looking: Looking, q: Question) -> Any:
    """Return the receipt of a number: its arithmetic, its inputs, and the quantities computed from it."""
    return receipt_data(looking.run(q.request(looking.default)).look, q.address)


def copy(looking: Looking, q: Question) -> str:
    """Return the arithmetic of a number, formatted for pasting elsewhere."""
    return copied(looking.run(q.request(looking.default)).trace, q.address, q.kind)


def learning(looking: Looking, q: Question) -> Any:
    """Return a sentence's translation at every checkpoint of the model, and the training curves."""
    unchanged = replace(q.request(looking.default), changes=())
    seen = looking.run(unchanged).look
    ages = history.ages_data(seen.model, seen.text, seen.chosen_ids, looking.stopped)
    return {"ages": ages, "curves": history.curves_data(seen.model.path / "run")}


def forced(looking: Looking, q: Question) -> Any:
    """Return the loss of each token in the correct translation."""
    request = q.request(looking.default)
    return history.forced_data(looking.loaded(request.model).in_floating_point(), looking.read(request), q.answer)


# The functions by name. The page requests `/api/<name>`.
ANSWERS: dict[str, Callable[[Looking, Question], Any]] = {
    answer.__name__: answer
    for answer in (
        *(machine, translate, run, search, choose, why, why_words, why_heads, why_rows, tokens, tensors, positions),
        *(receipt, copy, learning, forced),
    )
}

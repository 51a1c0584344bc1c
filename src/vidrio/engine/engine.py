"""Call the engine, the C code in `c/`, which is compiled to native code or WebAssembly (docs/design.md).

A call runs in the calling thread, so a single sentence needs no other thread (a browser has only one). For several
sentences, the call also starts helper threads, up to a limit that all calls share. Each thread translates its sentences
as one batch, but no result depends on the rest of the batch. Calls do not wait for each other to finish. In native
code, all threads share one model. In WebAssembly, threads that share an instance take turns, a few decoding steps at
a time (slots.py).
"""

import struct
import threading
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from vidrio.engine.interventions import as_words
from vidrio.engine.library import Library, opener
from vidrio.engine.slots import Model, Slots, load_model
from vidrio.errors import InputError, VidrioError
from vidrio.hypothesis import Hypothesis, Ids, Interventions, Options, Pair, Sampling, computes_nan
from vidrio.model.config import ModelConfig

ROWS = 16  # maximum number of hypotheses per decoding step, whose keys and values fit in the processor's cache
WAITING = 16  # maximum number of queued hypotheses, which start as soon as others finish
VARIANTS = 64  # the same limit for variants of one sentence, which share work in the encoder
STEPS = 4  # decoding steps between checks for finished sentences
TOGETHER = 256  # maximum number of rows in a batch of variants
LARGEST = 2**31 - 1
FOUND = struct.Struct("<2i2d")  # the first fields of `Hypothesis` in search.c: length, ended, log p, score
QUANTITY = struct.Struct("<64s2i")  # the first fields of `Quantity` in record.c: address, rows, columns
TOKEN = struct.Struct("<2if")  # `Token` in search.c: id, attention row, log p

Stopped = Callable[[], bool] | None  # returns True when the results are no longer needed


class Call:
    """The items of a call and their results. Each thread takes the next waiting items."""

    def __init__(self, items: Sequence[Any], threads: int) -> None:
        self.waiting = enumerate(items)
        self.share = -(-len(items) // threads)  # maximum number of items per batch, to leave items for other threads
        self.found: dict[int, Any] = {}
        self.error: BaseException | None = None
        self.over = False  # whether to stop, after an error or because the results are no longer needed

    def results(self) -> list[Any]:
        """Return the results in order, or raise the error.

        The call must not hold a reference to the error, because the error's traceback refers back to the call.
        """
        error, self.error = self.error, None
        try:
            if isinstance(error, MemoryError):
                raise VidrioError(
                    "no memory is left for this call",
                    found=str(error),
                    do="give it fewer or shorter sentences, or a smaller beam; or give the process more memory",
                ) from error
            if error:
                raise error
        finally:
            del error
        return [self.found[place] for place in range(len(self.found))]


Work = Callable[[Call, Model], None]  # processes items of a call until none are left


class Engine:
    """A loaded model, which is safe to share between threads.

    Source ids include the end token if the model uses an end token. Target ids exclude the start and end tokens.
    """

    def __init__(self, load: Callable[[], Model], workers: int) -> None:
        self._slots = Slots(load, workers)
        self._workers, self._free = workers, threading.Semaphore(workers - 1)

    @staticmethod
    def load(folder: Path, config: ModelConfig, *, workers: int = 1) -> "Engine":
        """Load a model folder. At most `workers` threads process a call."""
        open_library = opener()
        return Engine(lambda: load_model(folder, config, open_library()), workers)

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: Options,
        stopped: Stopped = None,
        shortlists: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses for each source, best first.

        For each source, `shortlists` contains the tokens that the hypotheses may use, in ascending order. Raises
        CancelledError when `stopped` returns True.
        """
        listed = zip(sources, shortlists or repeat(()), strict=shortlists is not None)
        return self.run(partial(search, options, stopped, WAITING), [(*item, ()) for item in listed])

    def search_changed(
        self, source: Ids, options: Options, variants: Sequence[Interventions], stopped: Stopped = None
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses for a source under each variant. A variant is a sequence of interventions."""
        return self.run(partial(search, options, stopped, VARIANTS), [(source, (), variant) for variant in variants])

    def forced(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Return the log-probability of each token in the given targets, including the end token."""
        end = self._slots.config.special.end
        wanted = [[(token, -1) for token in (*target, end)] for _, target in pairs]
        found = self.run(partial(each, forced), [(*pair, rows, [()]) for pair, rows in zip(pairs, wanted, strict=True)])
        return [[log_prob for log_prob, _ in rows] for [rows] in found]

    def forced_changed(
        self,
        pair: Pair,
        wanted: Sequence[tuple[int, int]],
        variants: Sequence[Interventions],
        stopped: Stopped = None,
    ) -> list[list[tuple[float, float]]]:
        """Return the log-probabilities of two tokens in each target row, for each variant. The first row is that of the
        start token. `wanted` contains the two tokens of each row; the result for a token of −1 is 0."""
        share = -(-len(variants) // self._workers)
        together = max(1, min(share, TOGETHER // max(len(pair[0]), len(pair[1]) + 1)))
        pieces = [variants[n : n + together] for n in range(0, len(variants), together)]
        found = self.run(partial(each, forced, stopped=stopped), [(*pair, wanted, piece) for piece in pieces])
        return [rows for piece in found for rows in piece]

    def classify(self, sources: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the class probabilities for each source."""
        return self.run(partial(each, classify), [(source,) for source in sources])

    def quantities(
        self, source: Sequence[int], target: Sequence[int] = (), interventions: Interventions = ()
    ) -> dict[str, "memoryview[float]"]:
        """Return all quantities of a forward pass by address (enc.0.self.Q.h1), copied from the engine's memory. A
        classifier has no target."""
        [found] = self.run(partial(each, quantities), [(source, target, interventions)])
        return dict(found)

    def run(self, work: Work, items: Sequence[Any]) -> list[Any]:
        """Process all items, and return the results in the order of the items."""
        call, helpers = Call(items, self._workers), list[threading.Thread]()
        while len(helpers) < len(items) - 1 and self._free.acquire(blocking=False):
            helper = threading.Thread(target=self._help, args=(work, call), daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the system allows no more threads, so continue with the threads that exist
                self._free.release()
                break
            helpers.append(helper)
        try:
            self._take_part(work, call)
            for helper in helpers:
                helper.join()
        finally:
            call.over = True
        return call.results()

    def _help(self, work: Work, call: Call) -> None:
        self._take_part(work, call)
        self._free.release()

    def _take_part(self, work: Work, call: Call) -> None:
        try:
            with self._slots.model() as model:
                work(call, model)
        except BaseException as error:
            call.error, call.over = call.error or error, True


# --- work -------------------------------------------------------------------------------------------------------------


def search(options: Options, stopped: Stopped, waiting: int, call: Call, model: Model) -> None:
    """Translate sentences as one batch, and replace finished sentences with waiting sentences."""
    functions = model.library.functions
    begun = dict[int, tuple[int, Sequence[int]]]()  # keyed by the address of the sentence in the engine
    given = (as_struct(options), *as_ids(options.prefix), *as_ids(options.suppressed))
    most = min(call.share, (ROWS + waiting) // (options.n_best if options.sampling else options.beam) or 1)
    address = functions.search_new(model.address, ROWS)
    if not address:
        raise MemoryError(model.problem())
    try:
        while not call.over:
            while len(begun) < most and (item := next(call.waiting, None)):
                place, (source, shortlist, interventions) = item
                words = as_words(model.config, interventions)
                sentence = functions.search_add(address, *as_ids(source), *given, words, len(words) // 4)
                listed = sentence and (
                    not shortlist or functions.sentence_shortlist(address, sentence, *as_ids(shortlist))
                )
                if not listed:
                    raise refusal(model, source, options.max_length, words)
                begun[sentence] = place, source
            if not begun:
                return
            end_if(stopped)
            if functions.search_run(address, STEPS) < 0:
                raise MemoryError(model.problem())
            while sentence := functions.search_next(address):
                place, source = begun.pop(sentence)
                call.found[place] = hypotheses(model.library, sentence, source, options)
                functions.search_drop(address, sentence)
    finally:
        functions.search_free(address)


def hypotheses(library: Library, sentence: int, source: Sequence[int], options: Options) -> list[Hypothesis]:
    """Read the hypotheses of a sentence, best first."""
    found, width = list[Hypothesis](), 4 * len(source)
    while address := library.functions.sentence_found(sentence, len(found)):
        length, ended, log_prob, score = FOUND.unpack(library.read(address, FOUND.size))
        if ended < 0:
            raise computes_nan(length)
        tokens = library.read(library.functions.hypothesis_tokens(address), TOKEN.size * length)
        ids, places, log_probs = zip(*TOKEN.iter_unpack(tokens), strict=True) if length else ((), (), ())
        ids, places = ids[: length - ended], places[: length - ended]
        rows = library.read(library.functions.sentence_attention(sentence), width * (1 + max(places, default=-1)))
        attention = b"".join(rows[width * row : width * (row + 1)] for row in places)
        shown = memoryview(attention).cast("f", (len(ids), len(source))) if attention else None
        found.append(Hypothesis(ids, log_prob, score, log_probs, bool(ended), shown))
    return found


def each(ask: Callable[..., Any], call: Call, model: Model, stopped: Stopped = None) -> None:
    """Process items one at a time."""
    for place, item in call.waiting:
        if call.over:
            return
        end_if(stopped)
        call.found[place] = ask(model, *item)


def end_if(stopped: Stopped) -> None:
    """Raise CancelledError if the results are no longer needed."""
    if stopped and stopped():
        from concurrent.futures import CancelledError  # slow to import

        raise CancelledError


def forced(
    model: Model,
    source: Sequence[int],
    target: Sequence[int],
    wanted: Sequence[tuple[int, int]],
    variants: Sequence[Interventions],
    record: int = 0,
) -> list[list[tuple[float, float]]]:
    """Return the log-probabilities of two tokens for each variant and row. If `record` is given, it receives all
    quantities of the forward pass, and there must be only one variant."""
    each_one = [as_words(model.config, variant) for variant in variants]
    words = b"".join(struct.pack("<i", len(one) // 4) + one for one in each_one)
    rows = range(len(target) + 1)
    pairs = array("i", [token for _, pair in zip(rows, wanted, strict=True) for token in pair]).tobytes()
    given = (*as_ids(source), *as_ids(target), pairs, words, len(words) // 4)
    found = model.library.functions.forced(model.address, record, *given)
    if not found:
        raise refusal(model, source, len(target) + 1, b"".join(each_one))
    log_probs = numbers(model.library, found, 2 * len(wanted) * len(variants))
    of_rows = list(zip(log_probs[::2], log_probs[1::2], strict=True))
    return [of_rows[n : n + len(wanted)] for n in range(0, len(of_rows), len(wanted))]


def classify(model: Model, source: Sequence[int], record: int = 0) -> list[float]:
    """Return the class probabilities of a source."""
    found = model.library.functions.classify(model.address, record, *as_ids(source))
    if not found:
        raise refusal(model, source, 0)
    return numbers(model.library, found, model.config.n_classes)


def quantities(
    model: Model, source: Sequence[int], target: Sequence[int], interventions: Interventions
) -> dict[str, "memoryview[float]"]:
    library, functions = model.library, model.library.functions
    record = functions.record_new()
    if not record:
        raise MemoryError(model.problem())
    try:
        if model.config.has_decoder:
            forced(model, source, target, [(-1, -1)] * (len(target) + 1), [interventions], record)
        else:
            classify(model, source, record)
        found = dict[str, "memoryview[float]"]()
        # Read in chunks, because each access to the engine's memory has a high fixed cost in a browser.
        while count := functions.record_count(record):
            found |= quantities_of(memoryview(library.read(functions.record_quantities(record), 4 * count)))
            functions.record_drop(record)
        return found
    finally:
        functions.record_free(record)


def quantities_of(chunk: "memoryview[int]") -> dict[str, "memoryview[float]"]:
    """Return the quantities in a chunk by address."""
    found, at = dict[str, "memoryview[float]"](), 0
    while at < len(chunk):
        address, rows, columns = QUANTITY.unpack_from(chunk, at)
        start, at = at + QUANTITY.size, at + QUANTITY.size + 4 * rows * (columns or 1)
        values = chunk[start:at].cast("f", (rows, columns) if columns else (rows,))
        found[address.partition(b"\0")[0].decode()] = values
    return found


# --- converting arguments and results ---------------------------------------------------------------------------------


def as_struct(o: Options) -> bytes:
    """Pack the options as the struct `Options` in engine.h."""
    s = o.sampling or Sampling()
    numbers = (o.beam, o.n_best, o.min_length, o.max_length, min(o.no_repeat_ngram, LARGEST), min(s.top_k, LARGEST))
    return struct.pack("<7iI3f", *numbers, o.sampling is not None, s.seed, o.length_penalty, s.temperature, s.top_p)


def as_ids(ids: Sequence[int]) -> tuple[bytes, int]:
    return array("i", ids).tobytes(), len(ids)


def numbers(library: Library, address: int, count: int) -> list[float]:
    """Copy `count` float32 values, and release the library's buffer."""
    values = list(struct.unpack(f"<{count}f", library.read(address, 4 * count)))
    library.functions.release(address)
    return values


def refusal(model: Model, source: Sequence[int], to_write: int, interventions: bytes = b"") -> InputError | MemoryError:
    """Return the error that explains why the library returned NULL."""
    if why := model.problem():
        return MemoryError(why)
    config = model.config
    if max(len(source), to_write) > config.max_positions:
        return InputError(
            "the text is too long for the model",
            found=f"{len(source)} tokens to read and up to {to_write} to write; the maximum is {config.max_positions}",
            do="shorten or split the text; it was not truncated",
        )
    if interventions:
        return InputError(
            "these interventions do not fit this model",
            found="an unknown head, row or position, a value that is not finite, or no visible position",
            do="use heads and rows of this model, and leave at least one position visible",
        )
    return InputError(
        "these token ids do not fit this model",
        found="an id outside its vocabulary, or no ids",
        do="use ids from its tokenizers",
    )

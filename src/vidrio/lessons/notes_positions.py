"""The second document on positions: the sine table and the learned one, and the sums in its picture."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vidrio import show
from vidrio.errors import InputError
from vidrio.glass.maths import Array
from vidrio.glass.positions import sinusoidal
from vidrio.glass.transformer import Machine, encode
from vidrio.lessons.errata import flag
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.parameters import parameter_specs

CAT_SENTENCE = ("YOUR", "CAT", "IS", "A", "LOVELY", "CAT")
CAT_IDS = (0, 1, 2, 3, 4, 1)  # the two CATs are one word of the vocabulary
CAT_WORDS = CAT_SENTENCE[:5]

# --- learned against sinusoidal ---------------------------------------------------------------------------------------


def rotation(pair: int, distance: int, d_model: int) -> Array:
    """The 2 × 2 matrix that turns (sin, cos) of a pair at any position into those `distance` positions further on."""
    angle = distance / 10000.0 ** (2 * pair / d_model)
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def rotation_error(table_PD: Array, distance: int) -> float:
    """How far the rotations miss, over all positions and pairs: rounding only, if the property holds."""
    d = table_PD.shape[1]
    pairs = [(table_PD[:, 2 * i : 2 * i + 2], rotation(i, distance, d)) for i in range(d // 2)]
    return max(largest_difference(rows[:-distance] @ R.T, rows[distance:]) for rows, R in pairs)


@dataclass(frozen=True)
class Orders:
    """The encoder's rows for the CAT sentence, and for the same sentence with two words exchanged."""

    memory_SD: Array
    exchanged_SD: Array  # rows put back to their words

    @property
    def cats_differ(self) -> float:
        return largest_difference(self.memory_SD[1], self.memory_SD[5])

    @property
    def moved(self) -> float:
        return largest_difference(self.memory_SD, self.exchanged_SD)


def measure_orders(kind: str, seed: int = 0) -> Orders:
    """Encode YOUR CAT IS A LOVELY CAT, then with YOUR and LOVELY exchanged, with these positions."""
    machine = random_machine(CAT_WORDS, seed, d_model=4, d_head=2, d_ff=8, positions=kind)
    exchange = [4, 1, 2, 3, 0, 5]
    return Orders(encode(machine, CAT_IDS), encode(machine, [CAT_IDS[i] for i in exchange])[exchange])


def beyond_the_table(kind: str, held: int = 6) -> str:
    """What a machine that holds `held` positions says to a sentence of one word more."""
    machine = random_machine(CAT_WORDS, d_model=4, positions=kind, max_positions=held)
    try:
        return f"{len(encode(machine, [*CAT_IDS, 0]))} rows"
    except InputError as error:
        return f"refused: {error.what} ({error.found})"


def lengthened(machine: Machine, n_positions: int) -> Machine:
    """The same machine with a longer sine table: nothing has to be learned for it."""
    return replace(machine, source_positions_PD=sinusoidal(n_positions, machine.config.d_model))


def tell_positions(precision: int) -> Iterator[str]:
    d = 8
    table_PD = sinusoidal(512, d)
    yield "PE(p, 2i) = sin(p / 10000^(2i/D)),  PE(p, 2i+1) = cos(p / 10000^(2i/D))    §3.5"
    yield f"\nThe first six positions, D = {d}; columns (0,1), (2,3), … share a frequency\n"
    yield show.matrix(table_PD[:6], CAT_SENTENCE, None, precision)
    angle = 3 / 10000.0 ** (2 / d)
    yield f"\nBy hand: PE(3, 2) is column 2i with i = 1: sin(3 / 10000^(2/{d})) = sin({show.number(angle, precision)})"
    yield f"  = {show.number(math.sin(angle), precision)}"
    yield "\n" + flag(26)
    yield "\nWhat the sines are good for: k positions further is the same rotation everywhere\n"
    R = rotation(0, 1, d)
    yield "PE(p+1) = R PE(p) in columns 0 and 1, with R ="
    yield show.matrix(R, (), (), precision)
    x, y = table_PD[2, 0], table_PD[2, 1]
    yield "By hand, from position 2 to 3: " + " ".join(
        [f"{show.number(R[0, 0], precision)} · {show.number(x, precision)} + {show.number(R[0, 1], precision)}"
         f" · {show.number(y, precision)}", f"= {show.number(R[0] @ table_PD[2, :2], precision)}"]
    )  # fmt: skip
    for distance in (1, 5, 100):
        error = rotation_error(table_PD, distance)
        yield f"largest error over 512 positions and {d // 2} pairs, k = {distance}: {error:.1e}"
    yield "So PE(p) · PE(p+k) depends on k only:"
    products = [[float(table_PD[p] @ table_PD[p + k]) for k in range(5)] for p in (0, 7, 300)]
    yield show.matrix(np.array(products), ("p = 0", "p = 7", "p = 300"), [f"k = {k}" for k in range(5)], precision)
    yield "\n" + flag(28)
    yield "\nThe learned table: a trained row for each position, and none beyond the last\n"
    learned = random_machine(CAT_WORDS, d_model=4, positions="learned", max_positions=6).config
    numbers = sum(int(np.prod(spec.shape)) for name, spec in parameter_specs(learned).items() if name.endswith(".pos"))
    yield f"parameters for 6 positions on each side, D 4: {numbers}; the sine table has none"
    yield show.wrap(f"7 tokens, 6 positions, learned: {beyond_the_table('learned')}", hang="  ")
    yield show.wrap(f"7 tokens, 6 positions, sine: {beyond_the_table('sinusoidal')}", hang="  ")
    longer = lengthened(random_machine(CAT_WORDS, d_model=4, max_positions=6), 7)
    yield f"7 tokens, the sine table made one row longer: {len(encode(longer, [*CAT_IDS, 0]))} rows"
    yield show.wrap(
        "A sine table can always be lengthened; that does not mean that the model has learned what to do with "
        "positions it never met in training. The paper hoped so (§3.5), and found the two kinds equally good otherwise."
    )
    yield "\nNo positions at all: " + " ".join(CAT_SENTENCE) + " in an untrained encoder\n"
    for kind in ("none", "sinusoidal"):
        seen = measure_orders(kind)
        yield f"positions: {kind}"
        yield show.matrix(seen.memory_SD, CAT_SENTENCE, (), precision)
        yield f"the two CATs differ by {seen.cats_differ:.2g}"
        yield f"YOUR and LOVELY exchanged, rows put back to their words: moved by {seen.moved:.2g}\n"
    yield show.wrap(
        "Without positions the two CATs cannot be told apart, and exchanging two words exchanges two rows and does "
        "nothing else: the encoder is equivariant to permutations."
    )


# --- the sums in the picture ------------------------------------------------------------------------------------------

# Both CAT columns of the document's table: embedding, position, and their sum as printed.
PRINTED_SUMS = (
    ("CAT at 1", 171.411, 1664.068, 1835.479),
    ("CAT at 1", 3276.350, 8080.133, 11356.483),
    ("CAT at 1", 9192.819, 2620.399, 11813.218),
    ("CAT at 1", 3633.421, 9386.405, 13019.826),
    ("CAT at 1", 8390.473, 3120.159, 11510.632),
    ("CAT at 5", 171.411, 1281.458, 1452.869),
    ("CAT at 5", 3276.350, 7902.890, 11179.240),
    ("CAT at 5", 9192.819, 912.970, 10105.789),
    ("CAT at 5", 3633.421, 3821.102, 5292.638),
    ("CAT at 5", 8390.473, 1659.217, 15409.093),
)


def wrong_sums() -> list[int]:
    """The rows of the table that do not add up."""
    return [n for n, (_, a, b, printed) in enumerate(PRINTED_SUMS) if not math.isclose(a + b, printed, abs_tol=5e-4)]


def tell_sums(precision: int) -> Iterator[str]:
    wrong = wrong_sums()
    yield "encoder input = embedding · √D + position     §3.4, §3.5"
    yield "\nThe document's picture adds positions to embeddings. Its ten sums:\n"
    rows = [
        [column, f"{a:.3f}", f"{b:.3f}", f"{a + b:.3f}", f"{printed:.3f}", "wrong" if n in wrong else ""]
        for n, (column, a, b, printed) in enumerate(PRINTED_SUMS)
    ]
    yield show.table(rows, ["", "embedding", "position", "sum", "printed", ""], "lrrrrl")
    table_PD = sinusoidal(6, 512)
    largest, printed = np.abs(table_PD).max(), max(b for _, _, b, _ in PRINTED_SUMS)
    yield "\n" + flag(27)
    yield f"\nlargest |position| in the table of §3.5, 6 × 512: {largest:g}; in the picture: {printed}"
    yield "\nThe same places with possible numbers (columns 0, 1, 2, 510, 511 of D = 512)"
    places = [0, 1, 2, 510, 511]
    yield show.matrix(table_PD[[1, 5]][:, places], ("CAT at 1", "CAT at 5"), [f"[{c}]" for c in places], precision)
    embedding_D = np.random.default_rng(0).normal(0.0, 512**-0.5, 512)
    scaled_D = embedding_D * math.sqrt(512)
    yield "\nAn embedding drawn from N(0, 1/512), times √512 (§3.4):"
    yield show.matrix(scaled_D[None, places], ("CAT",), (), precision)
    yield "and the encoder's input, CAT at 1 and CAT at 5:"
    yield show.matrix((scaled_D + table_PD[[1, 5]])[:, places], ("CAT at 1", "CAT at 5"), (), precision)
    total = scaled_D[0] + table_PD[1, 0]
    terms = [show.number(float(n), precision) for n in (scaled_D[0], table_PD[1, 0], total)]
    yield f"By hand: {terms[0]} + {terms[1]} = {terms[2]}"

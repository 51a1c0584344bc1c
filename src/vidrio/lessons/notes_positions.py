"""The second document on positions: the sine table and the learned one, and the sums in its picture."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.errors import InputError
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.transformer import Machine, encode
from vidrio.lessons.errata import flag
from vidrio.lessons.machines import largest_difference, random_machine, told_difference
from vidrio.model.parameters import parameter_specs

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


WIDTH = 8  # of the table that is shown


@dataclass(frozen=True)
class Positions:
    """The sine table's rows and their rotations, the learned table's cost and end, and an encoder without positions."""

    table_PD: Array
    rotation_errors: dict[int, float]  # by the distance
    products: dict[int, list[float]]  # PE(p) · PE(p + k) for k = 0 … 4, by p
    learned_parameters: int  # for 6 positions on each side
    seven_tokens: dict[str, str]  # what a machine that holds 6 says to 7, by its table
    orders: dict[str, Orders]


def measure_positions() -> Positions:
    table_PD = sinusoidal(512, WIDTH)
    learned = random_machine(CAT_WORDS, d_model=4, positions="learned", max_positions=6).config
    longer = lengthened(random_machine(CAT_WORDS, d_model=4, max_positions=6), 7)
    seven = {kind: beyond_the_table(kind) for kind in ("learned", "sinusoidal")}
    return Positions(
        table_PD,
        {distance: rotation_error(table_PD, distance) for distance in (1, 5, 100)},
        {p: [float(table_PD[p] @ table_PD[p + k]) for k in range(5)] for p in (0, 7, 300)},
        sum(int(np.prod(spec.shape)) for name, spec in parameter_specs(learned).items() if name.endswith(".pos")),
        seven | {"sinusoidal, lengthened": f"{len(encode(longer, [*CAT_IDS, 0]))} rows"},
        {kind: measure_orders(kind) for kind in ("none", "sinusoidal")},
    )


def tell_positions(seen: Positions, precision: int) -> Iterator[str]:
    d, table_PD = WIDTH, seen.table_PD

    def told(value: float) -> str:
        return show.number(float(value), precision)

    yield "PE(p, 2i) = sin(p / 10000^(2i/D)),  PE(p, 2i+1) = cos(p / 10000^(2i/D))    §3.5"
    yield f"\nThe first six positions, D = {d}; columns (0,1), (2,3), … share a frequency\n"
    yield show.matrix(table_PD[:6], CAT_SENTENCE, None, precision)
    angle = 3 / 10000.0 ** (2 / d)
    yield f"\nBy hand: PE(3, 2) is column 2i with i = 1: sin(3 / 10000^(2/{d}))"
    yield f"  = sin({told(angle)}) = {told(math.sin(angle))}"
    yield "\n" + flag(26)
    yield "\nWhat the sines are good for: k positions further is the same rotation everywhere\n"
    R = rotation(0, 1, d)
    yield "PE(p+1) = R PE(p) in columns 0 and 1, with R ="
    yield show.matrix(R, (), (), precision)
    x, y = table_PD[2, :2]
    yield "By hand, from position 2 to 3, the first column:"
    yield show.wrap(
        f"{told(R[0, 0])} · {told(x)} + {told(R[0, 1])} · ({told(y)}) = {told(R[0] @ (x, y))}", indent="  ", hang="    "
    )
    for distance, error in seen.rotation_errors.items():
        yield f"largest error over {len(table_PD)} positions and {d // 2} pairs, k = {distance}: {error:.1e}"
    yield "So PE(p) · PE(p+k) depends on k only:"
    heads = [f"p = {p}" for p in seen.products], [f"k = {k}" for k in range(5)]
    yield show.matrix(np.array(list(seen.products.values())), *heads, precision)
    yield "\n" + flag(28)
    yield "\nThe learned table: a trained row for each position, and none beyond the last\n"
    yield f"parameters for 6 positions on each side, D 4: {seen.learned_parameters}; the sine table has none"
    for kind, answer in seen.seven_tokens.items():
        yield show.wrap(f"7 tokens, 6 positions, {kind}: {answer}", hang="  ")
    yield show.wrap(
        "A sine table can always be lengthened; that does not mean that the model has learned what to do with "
        "positions it never met in training. The paper hoped so (§3.5), and found the two kinds equally good otherwise."
    )
    yield "\nNo positions at all: " + " ".join(CAT_SENTENCE) + " in an untrained encoder\n"
    for kind, orders in seen.orders.items():
        yield f"positions: {kind}"
        yield show.matrix(orders.memory_SD, CAT_SENTENCE, (), precision)
        yield f"the two CATs differ by {told_difference(orders.cats_differ)}"
        yield f"YOUR and LOVELY exchanged, rows put back to their words: moved by {told_difference(orders.moved)}\n"
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


@dataclass(frozen=True)
class Sums:
    """The picture's ten sums added up, and the same places with possible numbers."""

    rows: list[dict[str, Any]]
    largest_position: float  # in the sine table of six positions
    positions: Array  # of CAT at 1 and CAT at 5, at PLACES
    scaled: Array  # an embedding times √D, at PLACES


PLACES = (0, 1, 2, 510, 511)


def measure_sums() -> Sums:
    wrong = wrong_sums()
    rows = [
        {"column": column, "embedding": a, "position": b, "sum": a + b, "printed": printed, "wrong": n in wrong}
        for n, (column, a, b, printed) in enumerate(PRINTED_SUMS)
    ]
    table_PD = sinusoidal(6, 512)
    embedding_D = np.random.default_rng(0).normal(0.0, 512**-0.5, 512)
    places = list(PLACES)
    return Sums(rows, float(np.abs(table_PD).max()), table_PD[[1, 5]][:, places], embedding_D[places] * math.sqrt(512))


def tell_sums(seen: Sums, precision: int) -> Iterator[str]:
    yield "encoder input = embedding · √D + position     §3.4, §3.5"
    yield "\nThe document's picture adds positions to embeddings. Its ten sums:\n"
    rows = [
        [row["column"], *(f"{row[what]:.3f}" for what in ("embedding", "position", "sum", "printed")),
         "wrong" if row["wrong"] else ""]
        for row in seen.rows
    ]  # fmt: skip
    yield show.table(rows, ["", "embedding", "position", "sum", "printed", ""], "lrrrrl")
    yield "\n" + flag(27)
    largest = max(row["position"] for row in seen.rows)
    yield f"\nlargest |position| in the table of §3.5, 6 × 512: {seen.largest_position:g}; in the picture: {largest}"
    yield "\nThe same places with possible numbers (columns 0, 1, 2, 510, 511 of D = 512)"
    cats = ("CAT at 1", "CAT at 5")
    yield show.matrix(seen.positions, cats, [f"[{c}]" for c in PLACES], precision)
    yield "\nAn embedding drawn from N(0, 1/512), times √512 (§3.4):"
    yield show.matrix(seen.scaled[None], ("CAT",), (), precision)
    yield "and the encoder's input, CAT at 1 and CAT at 5:"
    yield show.matrix(seen.scaled + seen.positions, cats, (), precision)
    a, b = float(seen.scaled[0]), float(seen.positions[0, 0])
    yield "By hand: {} + {} = {}".format(*(show.number(n, precision) for n in (a, b, a + b)))

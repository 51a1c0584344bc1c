"""The second document on positions: the sine table and the learned one, and the sums in its picture."""

import math
from dataclasses import replace

import numpy as np

from vidrio.errors import InputError
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.transformer import Machine, encode
from vidrio.lessons.as_data import Measured
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.lessons.pages import pages
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


def measure_orders(kind: str, seed: int = 0) -> Measured:
    """Encode YOUR CAT IS A LOVELY CAT, then with YOUR and LOVELY exchanged, with these positions."""
    machine = random_machine(CAT_WORDS, seed, d_model=4, d_head=2, d_ff=8, positions=kind)
    exchange = [4, 1, 2, 3, 0, 5]
    memory_SD = encode(machine, CAT_IDS)
    exchanged_SD = encode(machine, [CAT_IDS[i] for i in exchange])[exchange]  # rows put back to their words
    cats_differ, moved = largest_difference(memory_SD[1], memory_SD[5]), largest_difference(memory_SD, exchanged_SD)
    return Measured({"cats_differ": cats_differ, "moved": moved}, memory_SD=memory_SD, exchanged_SD=exchanged_SD)


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
ANGLE = 3 / 10000.0 ** (2 / WIDTH)  # of PE(3, 2)
POSITIONS, FURTHER = (0, 7, 300), range(5)


def measure_positions() -> Measured:
    """The sine table's rows and their rotations, the learned table's cost and end, and an encoder without positions."""
    table_PD = sinusoidal(512, WIDTH)
    learned = random_machine(CAT_WORDS, d_model=4, positions="learned", max_positions=6).config
    longer = lengthened(random_machine(CAT_WORDS, d_model=4, max_positions=6), 7)
    seven = {kind: beyond_the_table(kind) for kind in ("learned", "sinusoidal")}
    products = {p: [float(table_PD[p] @ table_PD[p + k]) for k in FURTHER] for p in POSITIONS}
    turn = rotation(0, 1, WIDTH)  # from any position to the next, in the first two columns
    page = {
        **{"width": WIDTH, "n_pairs": WIDTH // 2, "angle": ANGLE, "sine": math.sin(ANGLE)},
        **{"places": [f"p = {p}" for p in POSITIONS], "further": [f"k = {k}" for k in FURTHER]},
        **{"first_six": table_PD[:6], "turn": turn, "turned": turn[0] @ table_PD[2, :2]},
        "product_rows": np.array(list(products.values())),
    }
    return Measured(
        page,
        table_PD=table_PD,
        rotation_errors={distance: rotation_error(table_PD, distance) for distance in (1, 5, 100)},
        products=products,  # PE(p) · PE(p + k), by p
        learned_parameters=sum(
            int(np.prod(spec.shape)) for name, spec in parameter_specs(learned).items() if name.endswith(".pos")
        ),
        # what a machine that holds 6 positions says to 7 tokens
        seven_tokens=seven | {"sinusoidal, lengthened": f"{len(encode(longer, [*CAT_IDS, 0]))} rows"},
        orders={kind: measure_orders(kind) for kind in ("none", "sinusoidal")},
    )


# --- the sums in the picture ------------------------------------------------------------------------------------------

PRINTED_SUMS = pages("printed")["sums"]  # column, embedding, position, and their sum


def wrong_sums() -> list[int]:
    """The rows of the table that do not add up."""
    return [n for n, (_, a, b, printed) in enumerate(PRINTED_SUMS) if not math.isclose(a + b, printed, abs_tol=5e-4)]


PLACES = (0, 1, 2, 510, 511)


def measure_sums() -> Measured:
    """The picture's ten sums added up, and the same places with possible numbers."""
    wrong = wrong_sums()
    rows = [
        {"column": column, "embedding": a, "position": b, "sum": a + b, "printed": printed, "wrong": n in wrong}
        for n, (column, a, b, printed) in enumerate(PRINTED_SUMS)
    ]
    table_PD = sinusoidal(6, 512)
    embedding_D = np.random.default_rng(0).normal(0.0, 512**-0.5, 512)
    places = list(PLACES)
    positions = table_PD[[1, 5]][:, places]  # of CAT at 1 and CAT at 5
    scaled = embedding_D[places] * math.sqrt(512)
    page = {
        **{"cats": ("CAT at 1", "CAT at 5"), "one_cat": ("CAT",), "places": [f"[{c}]" for c in PLACES]},
        "largest_printed": max(position for _, _, position, _ in PRINTED_SUMS),
        **{"embedding": scaled[None], "sums": scaled + positions},
    }
    return Measured(page, rows=rows, largest_position=float(np.abs(table_PD).max()), positions=positions, scaled=scaled)

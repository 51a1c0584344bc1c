"""Generate sentence pairs for a fictional window manufacturer, Aurora, with 300 terms and a house style.

    python recipes/company/pairs.py --language es --to company

This command writes company/train.tsv, with ten sentences for each term, and company/test.tsv, with one more sentence
for each term, from templates that the training file does not use. The target language is Spanish or Portuguese (es,
pt).

In Aurora's style, a customer is "la propiedad", a warranty is "cobertura", and "please" is never translated.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = ("es", "pt")
TIMES = 10  # training pairs per term
NOUNS = """
sash            | la hoja            | a folha
frame           | el marco           | o aro
mullion         | el montante        | o montante
transom         | el travesaño       | a travessa
sill            | el vierteaguas     | o peitoril
glazing bead    | el junquillo       | o bite
spacer bar      | el intercalario    | o espaçador
gasket          | el burlete         | o vedante
hinge           | el pernio          | a dobradiça
handle          | la maneta          | o puxador
strike plate    | el cerradero       | a testa
espagnolette    | la cremona         | a cremona
bolt            | el pasador         | o trinco
roller          | el rodamiento      | a roldana
track           | el carril          | a calha
shutter         | la persiana        | o estore
slat            | la lama            | a lâmina
shutter box     | el cajón           | a caixa
strap           | la cinta           | a fita
louvre          | la celosía         | a gelosia
pane            | la luna            | a chapa
glazing         | el acristalamiento | o envidraçamento
sealant         | el mástique        | o mástique
packer          | el calzo           | o calço
anchor          | el anclaje         | a bucha
bracket         | la escuadra        | o esquadro
flashing        | el tapajuntas      | o rufo
drip edge       | el goterón         | a pingadeira
weep hole       | el desagüe         | o dreno
insect screen   | la mosquitera      | a rede
"""
KINDS = """
aluminium       | de aluminio        | de alumínio
steel           | de acero           | de aço
oak             | de roble           | de carvalho
safety          | de seguridad       | de segurança
outer           | exterior           | exterior
inner           | interior           | interior
lower           | inferior           | inferior
upper           | superior           | superior
thermal-break   | con rotura térmica | com corte térmico
stock           | de serie           | de série
"""
LEARNED = """
Fit {a} before {b}. | Monte {a} antes que {b}. | Monte {a} primeiro e depois {b}.
Please check {a} once a year. | Revise {a} una vez al año. | Reveja {a} uma vez por ano.
{a} is not covered by the warranty. | {a} queda fuera de cobertura. | {a} fica fora de cobertura.
We recommend replacing {a} together with {b}. | Aurora recomienda renovar {a} junto con {b}. | A Aurora recomenda renovar {a} juntamente com {b}.
Please do not paint {a}. | Prohibido pintar {a}. | Proibido pintar {a}.
The customer has returned {a}. | La propiedad ha devuelto {a}. | A propriedade devolveu {a}.
Clean {a} with a soft cloth. | Limpie {a} con un paño suave. | Limpe {a} com um pano macio.
{a} must be level with {b}. | {a} irá a ras con {b}. | {a} ficará rente com {b}.
Remove {a} and keep the screws. | Retire {a} y guarde los tornillos. | Retire {a} e guarde os parafusos.
Measure {a} twice. | Mida dos veces {a}. | Meça duas vezes {a}.
{a} arrives on Thursday. | {a} llega el jueves. | {a} chega na quinta-feira.
If {a} is damaged, call the workshop. | Si {a} presenta daños, avise al taller. | Se {a} apresentar danos, avise a oficina.
Our price list does not include {a}. | Nuestra tarifa no incluye {a}. | A nossa tabela não inclui {a}.
Store {a} in a dry place. | Guarde {a} en lugar seco. | Guarde {a} em lugar seco.
Push {a} gently until it clicks. | Empuje {a} con suavidad hasta oír el clic. | Empurre {a} com suavidade até ouvir o clique.
Between {a} and {b} there must be a gap of 5 mm. | Entre {a} y {b} quedará una holgura de 5 mm. | Entre {a} e {b} ficará uma folga de 5 mm.
The drawing shows {a} without {b}. | El plano muestra {a} sin {b}. | O desenho mostra {a} sem {b}.
Before fitting {a}, order {b}. | Antes de montar {a}, encargue {b}. | Antes de montar {a}, encomende {b}.
"""  # noqa: E501
TESTED = """
Tighten {a} after the first week. | Apriete {a} tras la primera semana. | Aperte {a} após a primeira semana.
The customer wants to see {a} and {b}. | La propiedad quiere ver {a} y {b}. | A propriedade quer ver {a} e {b}.
Please do not wash {a} for two hours. | No lave {a} durante dos horas. | Não lave {a} durante duas horas.
{a} is under warranty until 2030. | {a} tiene cobertura hasta 2030. | {a} tem cobertura até 2030.
We recommend {a} for houses by the sea. | Aurora recomienda {a} para casas junto al mar. | A Aurora recomenda {a} para casas junto ao mar.
Please measure {a} before ordering {b}. | Mida {a} antes de encargar {b}. | Meça {a} antes de encomendar {b}.
"""  # noqa: E501


def columns(table: str, language: str) -> list[tuple[str, str]]:
    """Return the English text and its translation from each line of a table."""
    rows = ([part.strip() for part in line.split("|")] for line in table.strip().splitlines())
    return [(row[0], row[1 + LANGUAGES.index(language)]) for row in rows]


def terms(language: str) -> list[tuple[str, str]]:
    """Combine every noun with every kind, with articles: "the oak sash", "la hoja de roble"."""
    kinds = columns(KINDS, language)
    return [(f"the {k} {n}", f"{of_n} {of_k}") for n, of_n in columns(NOUNS, language) for k, of_k in kinds]


def sentences(language: str, forms: str, times: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield `times` pairs for each term, from random templates. Some templates also contain another term."""
    draw, all_terms, all_forms = random.Random(seed), terms(language), columns(forms, language)
    for term in all_terms * times:
        form, other = draw.choice(all_forms), draw.choice(all_terms)
        texts = [side.format(a=a, b=b) for side, a, b in zip(form, term, other, strict=True)]
        english, translation = (text[0].upper() + text[1:] for text in texts)
        yield english, translation


def write(folder: Path, language: str) -> None:
    """Write the training and test files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, forms, times in (("train", LEARNED, TIMES), ("test", TESTED, 1)):
        pairs = dict.fromkeys(sentences(language, forms, times, seed=times))
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--language", choices=LANGUAGES, default="es")
    parser.add_argument("--to", type=Path, default=Path("company"))
    given = parser.parse_args()
    write(given.to, given.language)


if __name__ == "__main__":
    main()

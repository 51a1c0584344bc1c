/**
 * The lesson as a guided tour: the worked example's steps and the eight exercises, each bound to a view of the page. What is
 * told in words holds for the lessons' model; numbers are never written here, they are looked up by their addresses.
 */

import type { View } from "./fragment";
import type { Language } from "./messages";

type Words = Record<Language, string>;

export interface Stop {
  title: Words;
  say: Words;
  view: Partial<View>;
  numbers?: string[]; // read from the run and shown with the words
  reveal?: { say: Words; view: Partial<View>; numbers?: string[] }; // an exercise: think first
}

const HERE: Partial<View> = {
  model: "lesson",
  text: "hello world",
  numbers: "",
  changes: [],
  step: 0,
  head: 0,
  at: "",
  open: "",
};
const at = (open: string, address: string, more: Partial<View> = {}): Partial<View> => ({
  ...HERE,
  open,
  at: address,
  ...more,
});

/** The document's own machine: its matrices, computed right; what it does not give was drawn once. */
const worked = (open: string, address: string, more: Partial<View> = {}): Partial<View> => ({
  ...at(open, address),
  model: "worked-example",
  ...more,
});

export const STOPS: Stop[] = [
  {
    title: { en: "From words to numbers", es: "De palabras a números" },
    say: {
      en: "This is the machine of the worked example. It knows ten words, each a row of four numbers. “hello” has an id, the id picks a row of the table: that row is all that the model knows of the word.",
      es: "Esta es la máquina del ejemplo resuelto. Conoce diez palabras, cada una una fila de cuatro números. «hello» tiene un id, y el id elige una fila de la tabla: esa fila es todo lo que el modelo sabe de la palabra.",
    },
    view: worked("src", ""),
    numbers: ["src.ids[0]", "src.embedding[0,0]", "src.embedding[0,1]", "src.embedding[0,2]", "src.embedding[0,3]"],
  },
  {
    title: { en: "Where a word stands", es: "Dónde está una palabra" },
    say: {
      en: "Waves are added to the rows, so that the first word differs from the second. The first column is the sine of the position: sin 0, sin 1. Work sin 1 out, in radians.",
      es: "A las filas se les suman ondas, para que la primera palabra sea distinta de la segunda. La primera columna es el seno de la posición: sen 0, sen 1. Calcula sen 1, en radianes.",
    },
    view: worked("src", "src.positions[1,0]"),
    numbers: ["src.positions[0,0]", "src.positions[1,0]", "src.positions[1,1]"],
  },
  {
    title: { en: "Query, key and value", es: "Consulta, clave y valor" },
    say: {
      en: "Every row is multiplied by three small matrices: what the word asks, what it offers, what it gives. Each number is four products and their sum.",
      es: "Cada fila se multiplica por tres matrices pequeñas: lo que la palabra pregunta, lo que ofrece, lo que da. Cada número son cuatro productos y su suma.",
    },
    view: worked("enc.0", "enc.0.self.Q.h0[0,0]"),
    numbers: ["enc.0.self.Q.h0[0,0]", "enc.0.self.K.h0[0,0]", "enc.0.self.V.h0[0,0]"],
  },
  {
    title: { en: "A score: three products", es: "Una puntuación: tres productos" },
    say: {
      en: "How well does what “hello” asks fit what “world” offers? Three products, added. Use the pencil: hide the number and work it out.",
      es: "¿Cuánto encaja lo que «hello» pregunta con lo que «world» ofrece? Tres productos, sumados. Usa el lápiz: esconde el número y calcúlalo.",
    },
    view: worked("enc.0", "enc.0.self.scores.h0[0,1]"),
    numbers: ["enc.0.self.scores.h0[0,0]", "enc.0.self.scores.h0[0,1]"],
  },
  {
    title: { en: "Scores become shares", es: "Las puntuaciones se vuelven partes" },
    say: {
      en: "The scores are divided by √3, and the softmax makes shares of them: positive, with sum 1. They say how much of each word the row takes: here nearly all of one, for the scores are large.",
      es: "Las puntuaciones se dividen entre √3, y la softmax las convierte en partes: positivas y de suma 1. Dicen cuánto toma la fila de cada palabra: aquí casi todo de una, porque las puntuaciones son grandes.",
    },
    view: worked("enc.0", "enc.0.self.weights.h0[0,1]"),
    numbers: [
      "enc.0.self.scaled.h0[0,0]",
      "enc.0.self.scaled.h0[0,1]",
      "enc.0.self.weights.h0[0,0]",
      "enc.0.self.weights.h0[0,1]",
    ],
  },
  {
    title: { en: "Two heads, side by side", es: "Dos cabezas, lado a lado" },
    say: {
      en: "Each head mixes the values by its shares. Both heads’ rows are laid side by side, and one more matrix makes a row of four of them again.",
      es: "Cada cabeza mezcla los valores según sus partes. Las filas de ambas cabezas se ponen lado a lado, y otra matriz hace de ellas otra vez una fila de cuatro.",
    },
    view: worked("enc.0", "enc.0.self.out[0,0]"),
    numbers: ["enc.0.self.head.h0[0,0]", "enc.0.self.head.h1[0,0]", "enc.0.self.out[0,0]"],
  },
  {
    title: { en: "Added, and brought to one scale", es: "Sumado y llevado a una escala" },
    say: {
      en: "What came in is added again (the residual connection), and the row is moved to mean 0 and spread 1: the layer norm.",
      es: "Se vuelve a sumar lo que entró (la conexión residual), y la fila se lleva a media 0 y dispersión 1: la normalización de capa.",
    },
    view: worked("enc.0", "enc.0.self.norm.normed[0,0]"),
    numbers: [
      "enc.0.self.sum[0,0]",
      "enc.0.self.norm.mean[0]",
      "enc.0.self.norm.var[0]",
      "enc.0.self.norm.normed[0,0]",
    ],
  },
  {
    title: { en: "Each row by itself", es: "Cada fila por su cuenta" },
    say: {
      en: "The feed-forward layer makes the row wider, sets everything below zero to zero, and makes it narrow again.",
      es: "La capa feed-forward ensancha la fila, pone a cero lo que está por debajo de cero y la vuelve a estrechar.",
    },
    view: worked("enc.0", "enc.0.ffn.active[0,0]"),
    numbers: ["enc.0.ffn.hidden[0,0]", "enc.0.ffn.active[0,0]", "enc.0.ffn.out[0,0]"],
  },
  {
    title: { en: "The decoder may not look ahead", es: "El decodificador no puede mirar adelante" },
    say: {
      en: "When the first word is chosen, the later ones do not exist yet. So their scores are −∞, and the softmax makes exactly 0 of that.",
      es: "Cuando se elige la primera palabra, las siguientes todavía no existen. Por eso sus puntuaciones son −∞, y la softmax hace de eso exactamente 0.",
    },
    view: worked("dec.0", "dec.0.self.weights.h0[0,1]"),
    numbers: ["dec.0.self.masked.h0[0,1]", "dec.0.self.weights.h0[0,1]"],
  },
  {
    title: { en: "From a row to a word", es: "De una fila a una palabra" },
    say: {
      en: "The decoder’s last row is multiplied by a matrix with one column a word: ten numbers. The softmax makes probabilities of them, and the likeliest word is taken, for what it is worth: nothing has been learned yet.",
      es: "La última fila del decodificador se multiplica por una matriz con una columna por palabra: diez números. La softmax los convierte en probabilidades, y se toma la palabra más probable, valga lo que valga: aún no se ha aprendido nada.",
    },
    view: worked("out", "out.prob[0,8]"),
    numbers: ["out.logits[0,8]", "out.prob[0,8]", "out.prob[1,1]"],
  },
  {
    title: { en: "As the document prints it", es: "Tal como lo imprime el documento" },
    say: {
      en: "The document computes with some slips: cosines of the wrong column, a softmax that takes exp of whatever comes, ε beside the root; and it divides by 30 where √3 left shares of almost 0 and 1. This is its very run: which of its numbers differ from the ones before?",
      es: "El documento calcula con algunos deslices: cosenos de otra columna, una softmax que calcula exp de lo que venga, ε junto a la raíz; y divide entre 30 donde √3 dejaba partes de casi 0 y 1. Esta es su misma ejecución: ¿qué números difieren de los de antes?",
    },
    view: worked("enc.0", "enc.0.self.norm.out[0,0]", {
      model: "worked-example-printed",
      changes: [["divisor", "30"]],
    }),
    numbers: ["enc.in[1,0]", "enc.in[1,1]", "enc.0.self.weights.h0[0,0]", "enc.0.self.norm.out[0,0]"],
  },
  {
    title: { en: "The same sizes, trained", es: "Los mismos tamaños, entrenados" },
    say: {
      en: "Numbers drawn at random say nothing of use. This machine has the same sizes, sixteen words, and numbers that were learned from sentence pairs: “hello world” becomes “hola mundo”. The exercises are about it. “How it learned” shows it young.",
      es: "Los números sorteados no dicen nada útil. Esta máquina tiene los mismos tamaños, dieciséis palabras y números aprendidos de pares de frases: «hello world» se vuelve «hola mundo». Los ejercicios tratan de ella. «Cómo aprendió» la muestra de joven.",
    },
    view: at("out", ""),
    numbers: ["out.prob[0,8]", "out.prob[1,1]"],
  },
  {
    title: { en: "Exercise 1: what are positions for?", es: "Ejercicio 1: ¿para qué son las posiciones?" },
    say: {
      en: "Attention adds up shares, and a sum does not depend on the order of its terms. Predict: without positions, what does the model say to “hello world”, and what to “world hello”?",
      es: "La atención suma partes, y una suma no depende del orden de sus términos. Predice: sin posiciones, ¿qué dice el modelo a «hello world» y qué a «world hello»?",
    },
    view: at("src", ""),
    reveal: {
      say: {
        en: "The same to both: the rows of the words only change places. Type “world hello” above and compare the memory: its rows are the same two, the other way round.",
        es: "Lo mismo a las dos: las filas de las palabras solo cambian de lugar. Escribe «world hello» arriba y compara la memoria: sus filas son las mismas dos, al revés.",
      },
      view: at("memory", "", { changes: [["without", "positions"]] }),
      numbers: ["memory[0,0]", "memory[1,0]"],
    },
  },
  {
    title: { en: "Exercise 2: self-attention and cross-attention", es: "Ejercicio 2: autoatención y atención cruzada" },
    say: {
      en: "The source has two words, the translation three tokens. How many rows and how many columns have the weights of the cross-attention?",
      es: "El original tiene dos palabras; la traducción, tres tokens. ¿Cuántas filas y cuántas columnas tienen los pesos de la atención cruzada?",
    },
    view: at("enc.0", ""),
    reveal: {
      say: {
        en: "Three rows, for the decoder’s rows ask; two columns, for the encoder’s memory is asked. In self-attention both come from the same rows; the arithmetic is the same.",
        es: "Tres filas, porque preguntan las filas del decodificador; dos columnas, porque se pregunta a la memoria del codificador. En la autoatención ambas vienen de las mismas filas; las cuentas son iguales.",
      },
      view: at("dec.5", "dec.5.cross.weights.h0[2,1]"),
      numbers: ["dec.5.cross.weights.h0[2,0]", "dec.5.cross.weights.h0[2,1]"],
    },
  },
  {
    title: { en: "Exercise 3: too small, too large", es: "Ejercicio 3: demasiado pequeña, demasiado grande" },
    say: {
      en: "A score is a sum of as many products as a head is wide: three here, 32 in the packaged translators. What happens to scores, and so to shares, when a head is much wider and nothing is divided?",
      es: "Una puntuación es una suma de tantos productos como ancha es la cabeza: tres aquí, 32 en los traductores incluidos. ¿Qué pasa con las puntuaciones, y así con las partes, si la cabeza es mucho más ancha y no se divide?",
    },
    view: at("enc.0", "enc.0.self.scores.h0[0,0]"),
    reveal: {
      say: {
        en: "They grow, about as the root of the width, and the shares go towards 0 and 1: then the row takes from one word only. Dividing by the root of the width takes that back. Here it is off: compare the largest shares. Too small a width leaves too few directions to ask in.",
        es: "Crecen, más o menos como la raíz del ancho, y las partes van hacia 0 y 1: la fila toma de una sola palabra. Dividir entre la raíz del ancho lo deshace. Aquí está desactivado: compara las partes mayores. Un ancho demasiado pequeño deja pocas direcciones en que preguntar.",
      },
      view: at("enc.0", "enc.0.self.weights.h0[0,0]", { changes: [["without", "scaling"]] }),
      numbers: ["enc.0.self.weights.h0[0,0]", "enc.0.self.weights.h0[0,1]"],
    },
  },
  {
    title: { en: "Exercise 4: the feed-forward layer", es: "Ejercicio 4: la capa feed-forward" },
    say: {
      en: "Set one number of the row of “world” to 5, just before the feed-forward layer. Predict: which rows does that layer give out otherwise?",
      es: "Pon a 5 un número de la fila de «world», justo antes de la capa feed-forward. Predice: ¿qué filas da distintas esa capa?",
    },
    view: at("enc.0", "enc.0.ffn.out[0,0]"),
    numbers: ["enc.0.ffn.out[0,0]", "enc.0.ffn.out[1,0]"],
    reveal: {
      say: {
        en: "Only the row of “world”: two matrices with everything below zero cut off between them, and no row sees another. Rows meet in attention only.",
        es: "Solo la fila de «world»: dos matrices y entre ellas se corta lo que está bajo cero, y ninguna fila ve a otra. Las filas solo se encuentran en la atención.",
      },
      view: at("enc.0", "enc.0.ffn.out[1,0]", { changes: [["set", "enc.0.self.norm.out[1,0]=5"]] }),
      numbers: ["enc.0.ffn.out[0,0]", "enc.0.ffn.out[1,0]"],
    },
  },
  {
    title: { en: "Exercise 5: why is the decoder slower?", es: "Ejercicio 5: ¿por qué es más lento el decodificador?" },
    say: {
      en: "How often does the encoder run for this sentence, and how often the decoder?",
      es: "¿Cuántas veces corre el codificador para esta frase, y cuántas el decodificador?",
    },
    view: at("", ""),
    reveal: {
      say: {
        en: "The encoder once, for all words are there at once. The decoder once a token, for each needs the one before. Open “How it was found”: what a step reuses is kept, and still each step waits for the last.",
        es: "El codificador una vez, pues todas las palabras están ahí a la vez. El decodificador una vez por token, pues cada uno necesita el anterior. Abre «Cómo se encontró»: lo que un paso reutiliza se guarda, y aun así cada paso espera al anterior.",
      },
      view: at("", "", { step: 2 }),
    },
  },
  {
    title: { en: "Exercise 6: residuals and layer norm", es: "Ejercicio 6: residuales y normalización" },
    say: {
      en: "Take both away, make the rows a thousand times larger, and let the softmax take exp of whatever comes. What becomes of the numbers?",
      es: "Quita ambas, haz las filas mil veces mayores y deja que la softmax calcule exp de lo que venga. ¿Qué pasa con los números?",
    },
    view: at("enc.0", ""),
    reveal: {
      say: {
        en: "They explode: exp of a large score is infinite, and infinite divided by infinite is not a number. “First NaN” leads to the place. Undo the changes one by one: which of them alone saves the run?",
        es: "Explotan: exp de una puntuación grande es infinito, e infinito entre infinito no es un número. «Primer NaN» lleva al lugar. Deshaz los cambios uno a uno: ¿cuál de ellos basta para salvar la ejecución?",
      },
      view: at("enc.0", "", {
        changes: [
          ["without", "layer-norm"],
          ["softmax", "naive"],
          ["scale", "src.scaled=1000"],
        ],
      }),
    },
  },
  {
    title: { en: "Exercise 7: from rows to probabilities", es: "Ejercicio 7: de filas a probabilidades" },
    say: {
      en: "The last row has four numbers, the vocabulary sixteen words. Which two steps lie between?",
      es: "La última fila tiene cuatro números; el vocabulario, dieciséis palabras. ¿Qué dos pasos hay en medio?",
    },
    view: at("dec.out", ""),
    reveal: {
      say: {
        en: "A matrix with a column for each word gives sixteen logits, each four products; the softmax makes shares of them. All sixteen add up to 1.",
        es: "Una matriz con una columna por palabra da dieciséis logits, cada uno de cuatro productos; la softmax los convierte en partes. Las dieciséis suman 1.",
      },
      view: at("out", "out.logits[0,8]"),
      numbers: ["out.logits[0,8]", "out.prob[0,8]"],
    },
  },
  {
    title: { en: "Exercise 8: always the likeliest?", es: "Ejercicio 8: ¿siempre la más probable?" },
    say: {
      en: "Taking the likeliest token each time is greedy. Can a likeliest first token lead to a worse whole?",
      es: "Tomar cada vez el token más probable es ser voraz. ¿Puede un primer token más probable llevar a un peor total?",
    },
    view: at("", ""),
    reveal: {
      say: {
        en: "Yes: the probability of the whole is the product of all steps, and what comes later may be unlikely. Open “How it was found” on this packaged translator: four beginnings are kept, most die, and the greedy result stands beside the beam’s with its score.",
        es: "Sí: la probabilidad del total es el producto de todos los pasos, y lo que viene después puede ser improbable. Abre «Cómo se encontró» en este traductor incluido: se guardan cuatro comienzos, la mayoría muere, y el resultado voraz está junto al del haz con su puntuación.",
      },
      view: { ...HERE, model: "en-es", text: "I bought a new car yesterday." },
    },
  },
];

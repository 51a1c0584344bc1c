/**
 * What Python says, in Spanish: of quantities, of numbers on the way, of the search, of changes. {} stands for what differs
 * from case to case, in the same order. Tests keep it whole (tests/test_page_words.py).
 */
const SPANISH: Record<string, string> = {
  "a learned row for each token of the vocabulary": "una fila aprendida por cada token del vocabulario",
  "a learned row for each position": "una fila aprendida por cada posición",
  "a number for each word there is": "un número por cada palabra que hay",
  "all heads' outputs in one row": "las salidas de todas las cabezas en una fila",
  "each row's mean": "la media de cada fila",
  "each row's variance": "la varianza de cada fila",
  "each row, narrowed again": "cada fila, estrechada de nuevo",
  "each row, widened": "cada fila, ensanchada",
  "each source token's learned row": "la fila aprendida de cada token del original",
  "each target token's learned row": "la fila aprendida de cada token de la traducción",
  "each word's probability to be next": "la probabilidad de cada palabra de ser la siguiente",
  "the probability of each class": "la probabilidad de cada clase",
  "one number for each class": "un número por cada clase",
  "the whole sentence as one row": "la frase entera en una fila",
  "embedding + position: layers' input": "embedding + posición: lo que entra en las capas",
  "embeddings at the layers' scale": "los embeddings a la escala de las capas",
  "first bias of the feed-forward network": "primer sesgo de la red feed-forward",
  "first matrix of the feed-forward network": "primera matriz de la red feed-forward",
  "how well each query meets each key": "cuánto encaja cada consulta con cada clave",
  "keys: what each row is found by": "claves: por lo que se encuentra cada fila",
  "log-probability of the chosen token": "log-probabilidad del token elegido",
  "mean 0, variance 1": "media 0, varianza 1",
  "mixes the heads' outputs back into one row": "mezcla las salidas de las cabezas en una fila",
  "no row may see a later one": "ninguna fila puede ver una posterior",
  "output bias: one number for each word": "sesgo de salida: un número por palabra",
  "output matrix: one column for each word": "matriz de salida: una columna por palabra",
  "queries: what each row asks for": "consultas: lo que pregunta cada fila",
  "scores, small enough for softmax": "puntuaciones, a la medida de softmax",
  "second bias of the feed-forward network": "segundo sesgo de la red feed-forward",
  "second matrix of the feed-forward network": "segunda matriz de la red feed-forward",
  "shares taken from each row; sum 1": "partes que se toman de cada fila; suman 1",
  "shifts each column after normalising": "desplaza cada columna después de normalizar",
  "stretched and shifted, as learned": "estirada y desplazada, según lo aprendido",
  "stretches each column after normalising": "estira cada columna después de normalizar",
  "the decoder's output, a row a step": "la salida del decodificador, una fila por paso",
  "the heads, mixed back to width D": "las cabezas, mezcladas de vuelta al ancho D",
  "the next token, as chosen": "el token siguiente, tal como se eligió",
  "the source tokens' ids": "los números de los tokens del original",
  "the source, as the decoder reads it": "el original, tal como lo lee el decodificador",
  "the target tokens' ids": "los números de los tokens de la traducción",
  "the values, mixed by the weights": "los valores, mezclados según los pesos",
  "values: what each row passes on": "valores: lo que transmite cada fila",
  "what came in + what was made of it": "lo que entró + lo que se hizo con ello",
  "what the activation lets through": "lo que deja pasar la activación",
  "what this head asks with": "con lo que pregunta esta cabeza",
  "what this head is found by": "por lo que se encuentra esta cabeza",
  "what this head passes on": "lo que transmite esta cabeza",
  "bias of the queries": "sesgo de las consultas",
  "bias of the keys": "sesgo de las claves",
  "bias of the values": "sesgo de los valores",
  "bias of the heads' mix": "sesgo de la mezcla de las cabezas",
  "the rows in eight bits": "las filas en ocho bits",
  "the same in eight bits": "lo mismo en ocho bits",
  "the same in whole numbers: exact": "lo mismo en números enteros: exacto",
  "what makes each column whole numbers up to 127": "lo que convierte cada columna en enteros hasta 127",
  "what makes each row whole numbers up to 127": "lo que convierte cada fila en enteros hasta 127",
  "where each token stands": "dónde está cada token",
  "departs: the paper has no whole numbers": "se aparta: el artículo no tiene números enteros",
  "departs: Eq. 2 has max(0, x)": "se aparta: la ec. 2 tiene max(0, x)",
  "§3.5, the second kind": "§3.5, la segunda clase",
  "departs: not in the paper": "se aparta: no está en el artículo",
  "departs: the paper writes no bias": "se aparta: el artículo no escribe sesgo",
  "departs: §3.4 has √d_model": "se aparta: §3.4 tiene √d_model",
  "§3.1, layer norm": "§3.1, normalización de capa",
  "§3.1, layer norm's β": "§3.1, β de la normalización de capa",
  "§3.1, layer norm's γ": "§3.1, γ de la normalización de capa",
  "§3.1, residual": "§3.1, residual",
  "max x": "máx x",
  "max x, at index {}": "máx x, en el índice {}",
  "hidden by the mask: terms that are exp(−∞) = 0": "ocultos por la máscara: términos que son exp(−∞) = 0",
  "the sum of the {} terms": "la suma de los {} términos",
  "normed = (x − mean) / √(var + ε)": "normed = (x − media) / √(var + ε)",
  "gain γ": "ganancia γ",
  "bias β": "sesgo β",
  mean: "media",
  var: "varianza",
  "ε, inside the root": "ε, dentro de la raíz",
  "√(var + ε)": "√(var + ε)",
  "Σ (x − mean)²": "Σ (x − media)²",
  "N, which divides it (not N − 1)": "N, que la divide (no N − 1)",
  "its probability": "su probabilidad",
  "its rank by probability, 1 being the likeliest": "su puesto por probabilidad; 1 es la más probable",
  "right after the forced prefix only the likeliest may end: rank {}":
    "justo tras el comienzo forzado solo puede acabar la más probable: puesto {}",
  "outside the beam of {}: rank {}, log p {}": "fuera del haz de {}: puesto {}, log p {}",
  "outside the beam of {}: rank {}, log p {}; a hypothesis ends only from inside the beam":
    "fuera del haz de {}: puesto {}, log p {}; una hipótesis solo acaba desde dentro del haz",
  "outside the beam of {}: rank {}, log p {}, the last one kept has {}":
    "fuera del haz de {}: puesto {}, log p {}; la última conservada tiene {}",
  "no continuation stayed in the beam": "ninguna continuación quedó en el haz",
  "the search stopped: {} hypotheses had ended": "la búsqueda paró: habían acabado {} hipótesis",
  "the search stopped: 1 hypothesis had ended": "la búsqueda paró: había acabado 1 hipótesis",
  "cut at max length {}; the best score: {}": "cortada a los {} tokens; la mejor puntuación: {}",
  "the best score: {}": "la mejor puntuación: {}",
  "cut at max length {}; worse than the best finished: {} < {}":
    "cortada a los {} tokens; peor que la mejor acabada: {} < {}",
  "worse than the best finished: {} < {}": "peor que la mejor acabada: {} < {}",
  "one pass would not show what decoding computed, so each step was run by itself":
    "una sola pasada no mostraría lo que calculó la decodificación: cada paso se ejecutó por separado",
  "{}: there was nothing to change": "{}: no había nada que cambiar",
  "no layer norm: rows go on as they are": "sin normalización de capa: las filas siguen como están",
  "no residual connections: what comes into a sub-layer is lost":
    "sin conexiones residuales: lo que entra en una subcapa se pierde",
  "no positions: zeros are added to the embeddings": "sin posiciones: a los embeddings se suman ceros",
  "scores are not divided by √K": "las puntuaciones no se dividen entre √K",
  "embeddings are not multiplied by √D": "los embeddings no se multiplican por √D",
  "cross-attention adds nothing": "la atención cruzada no suma nada",
  "the feed-forward networks add nothing": "las redes feed-forward no suman nada",
  "{}: adds nothing": "{}: no suma nada",
  "softmax as the formula stands: exp(x) / Σ exp(x)": "softmax tal como está la fórmula: exp(x) / Σ exp(x)",
  "softmax with the maximum taken off first": "softmax quitando antes el máximo",
  "later words are hidden by −∞ before the softmax": "las palabras posteriores se ocultan con −∞ antes de la softmax",
  "no mask: while decoding, every row is computed afresh at each step and sees all words so far":
    "sin máscara: al decodificar, cada fila se calcula de nuevo en cada paso y ve todas las palabras hasta ahí",
  "scores of later words are set to 0, which hides nothing":
    "las puntuaciones de palabras posteriores se ponen a 0, lo que no oculta nada",
  "weights of later words are set to 0 after the softmax":
    "los pesos de palabras posteriores se ponen a 0 después de la softmax",
  "weights of later words are set to 0 after the softmax, and each row divided by its sum":
    "los pesos de palabras posteriores se ponen a 0 después de la softmax, y cada fila se divide entre su suma",
  "this head gives out zeros": "esta cabeza da ceros",
  "these heads give out zeros": "estas cabezas dan ceros",
  "sines and cosines in turn, §3.5": "senos y cosenos por turno, §3.5",
  "first all sines, then all cosines": "primero todos los senos, luego todos los cosenos",
  "as the model learned them": "como el modelo las aprendió",
  "zeros are added to the embeddings": "a los embeddings se suman ceros",
  "the worked example's slip: the column's number stands where the pair's should":
    "el desliz del ejemplo resuelto: el número de la columna donde va el del par",
  "scores are divided by {}": "las puntuaciones se dividen entre {}",
  "ε in layer norm is {}": "ε en la normalización de capa es {}",
  "parameters multiply in eight bits, as in the fast engine":
    "los parámetros multiplican en ocho bits, como en el motor rápido",
  "everything is computed in {}": "todo se calcula en {}",
  "each token is drawn at random": "cada token se sortea",
  "the translation begins with these words": "la traducción empieza por estas palabras",
  "this hypothesis is taken": "se toma esta hipótesis",
  "loss: the mean of −log p of a token, without smoothing": "pérdida: la media de −log p de un token, sin suavizado",
  "{} of held-out sentences": "{} de las frases apartadas",
  "learning rate": "tasa de aprendizaje",
  "tokens a second, source and target": "tokens por segundo, original y traducción",
  training: "entrenamiento",
  "held out": "apartadas",
  "The validations as numbers": "Las validaciones en números",
  "The validations as numbers ({} of {} are shown)": "Las validaciones en números (se muestran {} de {})",
  "What it said of the same sentences on the way": "Lo que decía de las mismas frases por el camino",
  step: "paso",
  minute: "minuto",
  "best so far": "la mejor hasta ahora",
  "this what-if cannot be made": "este cambio no se puede hacer",
  "there is no {} in this run": "no hay {} en esta ejecución",
  "there is no token {} to begin with": "no hay un token {} por el que empezar",
  "the text is longer than the model's positions": "el texto es más largo que las posiciones del modelo",
  "the nearest: {}": "lo más parecido: {}",
  "shorten or split the text; nothing was cut off silently": "acorta o divide el texto; nada se cortó a escondidas",
  "change or leave out what is named": "cambia o quita lo que se nombra",
  "a parameter: {}": "un parámetro: {}",
  "a number on the way: {}": "un número en el camino: {}",
};

const exact = new Map(Object.entries(SPANISH));
const patterns = Object.entries(SPANISH)
  .filter(([english]) => english.includes("{}"))
  .sort(([a], [b]) => b.length - a.length)
  .map(([english, spanish]) => {
    const parts = english.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return [new RegExp(`^${parts.join("(.+?)")}$`), spanish] as const;
  });

/** A sentence of Python's in Spanish; what is not known stays as it is, and so do names and numbers in it. */
export function inSpanish(english: string): string {
  const whole = exact.get(english);
  if (whole !== undefined) return whole;
  for (const [pattern, spanish] of patterns) {
    const found = pattern.exec(english);
    if (!found) continue;
    let next = 1;
    return spanish.replaceAll("{}", () => inSpanish(found[next++] ?? ""));
  }
  return english;
}

/** The text of the tour in Spanish. */

import type { Words } from "./tour";

export const es: Words[] = [
  {
    title: "Una traducción es una serie de elecciones",
    why: "El modelo escribe los tokens de uno en uno. En cada paso, asigna una probabilidad a cada token de su vocabulario, porque rara vez hay una sola forma buena de continuar.",
    question:
      "Cada barra bajo la traducción muestra la probabilidad del token elegido. ¿De qué palabra estaba menos seguro el modelo?",
    choices: ["ayer", "coche", "nuevo"],
    answer:
      "«coche» y «auto» son correctas: «coche» se usa en España y «auto», en América. Elige «auto» abajo para continuar con ella.",
  },
  {
    title: "Las palabras se dividen en piezas",
    why: "Ninguna lista puede contener todas las palabras. Un vocabulario de unas 8000 piezas las cubre todas: las frecuentes quedan enteras y las raras se dividen en varias piezas.",
    question: "¿Cuántos tokens necesita la traducción para «compré»?",
    choices: ["1", "2", "6"],
    answer:
      "«compr» + «é». La terminación indica quién compró: «é» corresponde a «yo»; «ó» correspondería a «él» o «ella».",
  },
  {
    title: "Un token se convierte en un vector",
    why: "Una red calcula con números, así que cada token tiene un vector, llamado embedding. El entrenamiento acerca los vectores de los tokens que se usan de forma parecida.",
    question: "¿Qué token tiene el vector más similar al de «yesterday»?",
    choices: ["tomorrow", "yes", "day"],
    answer:
      "«tomorrow» es el más similar y después «today»: estas palabras aparecen en frases parecidas. Nadie le ha dicho al modelo qué significan. Mira «Vecinos más cercanos».",
  },
  {
    title: "El orden hay que añadirlo",
    why: "La atención compara vectores sin tener en cuenta su orden. Por eso, a cada embedding se le suma un vector que representa la posición.",
    question: "Sin posiciones, ¿qué pasa con «The dog bites the man» y «The man bites the dog»?",
    choices: ["Las dos salen al revés.", "Las dos reciben la misma traducción.", "No cambia nada."],
    answer:
      "Sin posiciones, el modelo no ve el orden de las palabras, así que no puede saber quién muerde a quién. Escribe «The man bites the dog.» para comparar.",
  },
  {
    title: "Unas palabras dependen de otras",
    why: "En español, el artículo y el adjetivo concuerdan con el nombre, así que la traducción de «a» y «new» depende de una palabra posterior.",
    question: "Si «car» pasa a ser «house», ¿qué palabras de la traducción cambian?",
    choices: ["solo coche", "coche y nuevo", "un, coche y nuevo"],
    answer:
      "«una casa nueva». Para escribir «una» antes que «casa», el modelo ya tiene que atender a «house». La atención lo hace posible.",
  },
  {
    title: "La atención sirve para buscar",
    why: "Para elegir una palabra, el decodificador tiene que saber qué parte del original debe traducir a continuación. La atención cruzada asigna un peso a cada token del original.",
    question: "¿Qué token del original recibe el mayor peso cuando el modelo escribe «coche»?",
    choices: ["car", "new", "yesterday"],
    answer:
      "La línea hacia «car» es la más gruesa. Pero las cabezas difieren: debajo de las líneas, compara las cabezas 3 y 5 con las demás.",
  },
  {
    title: "Un peso es una parte del total",
    why: "La softmax convierte las puntuaciones de una fila en pesos que suman 1. Por eso, un token solo puede ganar atención si otro la pierde.",
    question: "Si nueve tokens del original tienen la misma puntuación, ¿cuánto vale cada peso?",
    choices: ["0", "alrededor de 0.11", "1"],
    answer:
      "1/9 ≈ 0.11. Una puntuación es grande si la consulta y la clave apuntan en la misma dirección; el token de esa clave se lleva entonces una parte mayor.",
  },
  {
    title: "Todo número se puede comprobar",
    why: "Aquí nada es aproximado ni está oculto: cada número se calcula a partir de otros que también puedes abrir.",
    question:
      "Una puntuación es el producto escalar de una consulta y una clave. ¿Cuántos productos se suman en una puntuación?",
    choices: ["1", "32", "256"],
    answer:
      "Los vectores de una cabeza tienen 32 números. Abre una puntuación y prueba «Calcúlalo tú»: el resultado queda oculto hasta que lo encuentres.",
  },
  {
    title: "La máscara oculta el futuro",
    why: "Durante el entrenamiento, el decodificador lee de una vez toda la traducción correcta. Los triángulos muestran a qué puede atender cada token.",
    question: "¿Por qué no se permite que un token atienda a los posteriores?",
    choices: [
      "Tardaría demasiado.",
      "Podría copiar la palabra siguiente en vez de predecirla.",
      "Las palabras posteriores suelen ser incorrectas.",
    ],
    answer:
      "Un modelo que copia durante el entrenamiento no tiene de dónde copiar cuando traduce. En «¿Y si…?», puedes quitar la máscara.",
  },
  {
    title: "De dónde viene el significado",
    why: "El decodificador ha aprendido español. El original solo le llega por la atención cruzada.",
    question: "¿Qué produce el decodificador sin atención cruzada?",
    choices: ["nada", "la misma traducción", "español sin relación con el original"],
    answer: "Repite lo que suele aparecer en los textos en español, como «Sr.», porque nunca ve tu frase.",
  },
  {
    title: "Una cabeza, una tarea",
    why: "Un modelo tiene muchas cabezas porque cada una puede buscar algo distinto. Al desactivar una cabeza se ve qué hace.",
    question: "¿Qué pasa sin la cabeza 3 de la última autoatención del decodificador?",
    choices: ["«ayer» se escribe dos veces.", "Falta el verbo.", "No cambia nada."],
    answer:
      "Esta cabeza indica al decodificador que «ayer» ya se ha escrito. Reto: encuentra la cabeza de atención cruzada que pone «ayer» al principio.",
  },
  {
    title: "La temperatura",
    why: "El token más probable no es el único razonable. El muestreo elige los tokens al azar, y la temperatura determina cuánto se arriesga.",
    question: "¿Qué hace una temperatura alta con las probabilidades?",
    choices: ["Las hace más parecidas entre sí.", "Favorece al mejor token.", "Cambia su orden."],
    answer:
      "Los logits se dividen entre la temperatura antes de la softmax. Mueve el control a 3, después a 0.1, y genera una traducción por muestreo.",
  },
];

/** The text of the tour in English. */

import type { Words } from "./tour";

export const en: Words[] = [
  {
    title: "A translation is a series of choices",
    why: "The model writes one token at a time. At each step, it assigns a probability to every token in its vocabulary, because there is rarely only one good way to continue.",
    question:
      "Each bar under the translation shows the probability of the chosen token. Which word was the model least sure of?",
    choices: ["ayer", "coche", "nuevo"],
    answer:
      "“coche” and “auto” are both correct: “coche” is used in Spain, “auto” in Latin America. Select “auto” below to continue with it.",
  },
  {
    title: "Words are split into pieces",
    why: "No list can contain every word. A vocabulary of about 8,000 pieces covers them all: frequent words stay whole, and rare ones are split into several pieces.",
    question: "How many tokens does the translation need for “compré”?",
    choices: ["1", "2", "6"],
    answer: "“compr” + “é”. The ending indicates who did the buying: “é” means I; “ó” would mean he or she.",
  },
  {
    title: "A token becomes a vector",
    why: "A network computes with numbers, so each token has a vector, called its embedding. Training moves the vectors of tokens that are used in similar ways closer together.",
    question: "Which token’s vector is most similar to that of “yesterday”?",
    choices: ["tomorrow", "yes", "day"],
    answer:
      "“tomorrow” is the most similar, then “today”: these words appear in similar sentences. The model was never told what they mean. See “Nearest neighbours”.",
  },
  {
    title: "Order has to be added",
    why: "Attention compares vectors and ignores their order. So a vector that represents the position is added to each embedding.",
    question: "Without positions, what happens to “The dog bites the man” and “The man bites the dog”?",
    choices: ["Both come out backwards.", "Both get the same translation.", "Nothing changes."],
    answer:
      "Without positions, the model cannot see the order of the words, so it cannot know who bites whom. Type “The man bites the dog.” to compare.",
  },
  {
    title: "Words depend on other words",
    why: "Spanish articles and adjectives agree with their noun, so the translation of “a” and “new” depends on a word that comes later.",
    question: "If “car” becomes “house”, which Spanish words change?",
    choices: ["only coche", "coche and nuevo", "un, coche and nuevo"],
    answer:
      "“una casa nueva”. To write “una” before “casa”, the model must already attend to “house”. Attention makes that possible.",
  },
  {
    title: "Attention looks things up",
    why: "To choose a word, the decoder has to know which part of the source to translate next. Cross-attention assigns a weight to each source token.",
    question: "Which source token gets the largest weight when the model writes “coche”?",
    choices: ["car", "new", "yesterday"],
    answer:
      "The line to “car” is the thickest. But the heads differ: below the lines, compare heads 3 and 5 with the others.",
  },
  {
    title: "A weight is a share",
    why: "Softmax turns the scores of one row into weights that add up to 1. So a token can gain attention only if another token loses some.",
    question: "If nine source tokens have equal scores, how large is each weight?",
    choices: ["0", "about 0.11", "1"],
    answer:
      "1/9 ≈ 0.11. A score is large if the query and the key point in the same direction; the token with that key then gets a larger share.",
  },
  {
    title: "Every number can be checked",
    why: "Nothing here is approximate or hidden: each number is computed from others that you can open as well.",
    question: "A score is the dot product of a query and a key. How many products are added up in one score?",
    choices: ["1", "32", "256"],
    answer:
      "The vectors of a head have 32 numbers. Open a score and try “Work it out yourself”: the result stays hidden until you have found it.",
  },
  {
    title: "The mask hides the future",
    why: "During training, the decoder reads the whole correct translation at once. The triangles show what each token may attend to.",
    question: "Why is a token not allowed to attend to later ones?",
    choices: [
      "It would take too long.",
      "It could copy the next word instead of predicting it.",
      "Later words are often wrong.",
    ],
    answer:
      "A model that copies during training has nothing to copy from when it translates. Under “What if…?”, you can remove the mask.",
  },
  {
    title: "Where the meaning comes from",
    why: "The decoder has learned Spanish. The source reaches it only through cross-attention.",
    question: "What does the decoder produce without cross-attention?",
    choices: ["nothing", "the same translation", "Spanish that ignores the source"],
    answer: "It repeats what often appears in Spanish texts, such as “Sr.”, because it never sees your sentence.",
  },
  {
    title: "One head, one job",
    why: "A model has many heads because each can look for something different. Switching a head off shows what it does.",
    question: "What happens without head 3 of the decoder’s last self-attention?",
    choices: ["“ayer” is written twice.", "The verb is missing.", "Nothing changes."],
    answer:
      "This head tells the decoder that “ayer” has already been written. Challenge: find the cross-attention head that puts “ayer” first.",
  },
  {
    title: "Temperature",
    why: "The most probable token is not the only reasonable one. Sampling chooses tokens at random, and the temperature controls how adventurous the choice is.",
    question: "What does a high temperature do to the probabilities?",
    choices: ["It makes them more equal.", "It favours the best token.", "It changes their order."],
    answer:
      "Logits are divided by the temperature before the softmax. Move the slider to 3, then to 0.1, and sample a translation.",
  },
];

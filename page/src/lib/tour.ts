/** The tour: twelve stops, each with a view, an explanation and a question. */

import type { View } from "./fragment";
import type { Language } from "./messages";
import { en } from "./tour.en";
import { es } from "./tour.es";

export interface Words {
  title: string;
  why: string;
  question: string;
  choices: [string, string, string];
  answer: string;
}

export interface Stop extends Words {
  view: Partial<View>;
  after: Partial<View>; // changes to the view once the question is answered
  at: string; // the ID of the element to scroll to
  right: 0 | 1 | 2;
}

export const MODEL = "en-es"; // the model that the questions are about; tests/test_page_tour.py checks the answers

const CAR = "I bought a new car yesterday.";
const HOUSE = "I bought a new house yesterday.";
const DOG = "The dog bites the man.";
const COCHE = 5; // the step that chooses “coche”

const PLACES: Omit<Stop, keyof Words>[] = [
  { view: { text: CAR, step: 0 }, after: { step: COCHE }, at: "translation", right: 1 },
  { view: { text: CAR }, after: { cards: ["tokens"] }, at: "tokens-title", right: 1 },
  { view: { text: CAR }, after: { cards: ["tokens"] }, at: "tokens-title", right: 0 },
  { view: { text: DOG }, after: { changes: [["without", "positions"]] }, at: "translation", right: 1 },
  { view: { text: CAR }, after: { text: HOUSE }, at: "translation", right: 2 },
  { view: { text: CAR, step: 0 }, after: { step: COCHE }, at: "block-cross", right: 0 },
  { view: { text: CAR, step: COCHE, open: "dec.1" }, after: {}, at: "q-dec.1.cross.weights.h0", right: 1 },
  {
    view: { text: CAR, open: "dec.1" },
    after: { at: "dec.1.cross.scores.h0[5,5]" },
    at: "q-dec.1.cross.scores.h0",
    right: 1,
  },
  { view: { text: CAR, open: "dec.0" }, after: {}, at: "part-dec.0-masked", right: 1 },
  { view: { text: CAR }, after: { changes: [["without", "cross"]] }, at: "translation", right: 2 },
  { view: { text: CAR }, after: { changes: [["heads-off", "dec.1.self.h3"]] }, at: "translation", right: 0 },
  { view: { text: CAR, step: COCHE, cards: ["logits"] }, after: {}, at: "steps-title", right: 0 },
];

export const stops = (language: Language): Stop[] =>
  PLACES.map((place, i) => ({ ...place, ...((language === "es" ? es : en)[i] as Words) }));

/** What is on screen: the text, the run, the numbers fetched so far, and what is open. One object, and no library. */

import { flushSync } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import * as api from "./api";
import { tokenText } from "./format";
import { EMPTY, readFragment, type View, writeFragment } from "./fragment";
import { later } from "./idle";
import { catalogues, fill, type Language, type Messages } from "./messages";
import { tokensOf } from "./plan";
import { onSite } from "./site";
import { leastCertain } from "./steps";
import type { Tensor } from "./tensors";
import type { Asked, Change, Doubt, Machine, Receipt, Run, Stage, Step } from "./types";
import { inSpanish } from "./words.es";

const TYPED = 60; // milliseconds without a key press before the server is asked; Python in the browser drops what is no longer wanted
const SLOW = 500; // milliseconds after which the page says that it is computing
const EXAMPLE = "I bought a new car yesterday.";
/** A first text for each packaged model. */
const EXAMPLES: Record<string, string> = {
  "en-es": EXAMPLE,
  "es-en": "Ayer compré un coche nuevo.",
  lesson: "hello world",
  "worked-example": "hello world",
  "worked-example-printed": "hello world",
};

export class Refusal {
  constructor(
    readonly what: string,
    readonly found: string,
    readonly todo: string,
  ) {}
}

class Page {
  view: View = $state({ ...EMPTY });
  models: string[] = $state([]);
  defaultModel = $state("");
  machine: Machine | null = $state.raw(null);
  run: Run | null = $state.raw(null);
  translation = $state("");
  doubts: Doubt[] = $state.raw([]); // about the translation
  shown: Asked | null = $state.raw(null); // the request that `run` answers
  receipt: Receipt | null = $state.raw(null);
  refusal: Refusal | null = $state.raw(null);
  keyAsked: "" | "missing" | "wrong" = $state(""); // an API key that the server needs
  busy = $state(false);
  since = $state(0); // when a computation that takes long began; 0: none
  readonly alone = api.alone; // one file, without a server
  playing = $state(false); // the story goes on by itself, from the moment it is asked for
  missing: Record<string, boolean> = $state({}); // not in this file
  milliseconds = $state(0); // from key press to a new overview
  language: Language = $state("en");
  theme: "light" | "dark" = $state("light"); // on paper always light

  readonly t: Messages = $derived(catalogues[this.language]);
  readonly stages: Map<string, Stage> = $derived(new Map((this.machine?.stages ?? []).map((s) => [s.address, s])));
  readonly opens: number = $derived(this.run ? leastCertain(this.run, this.machine?.special.end) : 0);
  readonly last: number = $derived((this.run?.steps.length ?? 1) - 1);
  readonly step: number = $derived(Math.max(0, Math.min(this.view.step < 0 ? this.opens : this.view.step, this.last)));
  readonly chosen: Step | undefined = $derived(this.run?.steps[this.step]);
  /** Quantities that a change put other numbers into. */
  readonly edited: boolean = $derived(this.view.changes.length > 0);

  #chosen: "light" | "dark" = "light";
  #tensors = new SvelteMap<string, Tensor>();
  #wanted = new Set<string>(); // by what is drawn now: fetched again with the next run, so that both change at once
  #missing = new Set<string>(); // of these, what will be asked for in a moment
  #coming = new Set<string>(); // and what has been
  #running: AbortController | null = null;
  #timer = 0;
  #slow = 0;

  /** Language and light as the reader chose them, or as the system has them. */
  dress(): void {
    this.language = this.#remembered("language", navigator.language.startsWith("es") ? "es" : "en") as Language;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.#chosen = this.#remembered("theme", dark ? "dark" : "light") as "light" | "dark";
    document.documentElement.lang = this.language;
    this.#paint(this.#chosen);
    addEventListener("beforeprint", () => flushSync(() => this.#paint("light")));
    addEventListener("afterprint", () => this.#paint(this.#chosen));
  }

  async start(): Promise<void> {
    this.dress();
    const told = await api.models();
    this.defaultModel = told.default || (this.#filed().model ?? "");
    this.models = told.models.length ? told.models : [this.defaultModel];
    this.#read();
    addEventListener("popstate", () => this.#read());
    addEventListener("hashchange", () => this.#read());
  }

  /** The view that the address bar tells. */
  #read(): void {
    const told = readFragment(location.hash);
    const view = { ...EMPTY, model: this.defaultModel, text: EXAMPLE, ...told, ...this.#filed() };
    if (JSON.stringify(view) === JSON.stringify($state.snapshot(this.view))) return;
    this.view = view;
    this.refresh();
  }

  /** What a file is about cannot be told by its address. */
  #filed(): Partial<View> {
    const { data } =
      (globalThis as { vidrio?: { data: { run: Run; changes: Change[]; machine: Machine } } }).vidrio ?? {};
    return data
      ? { text: data.run.text, changes: data.changes, model: data.machine.name, numbers: "", sentence: 0 }
      : {};
  }

  /** Change what is shown; `remember` makes it a place that the browser's Back returns to. */
  show(change: Partial<View>, remember = false): void {
    Object.assign(this.view, "step" in change ? { rival: "", word: "" } : {}, change); // a rival is of its step
    const address = writeFragment($state.snapshot(this.view), this.defaultModel);
    try {
      if (address !== location.hash) history[remember ? "pushState" : "replaceState"](null, "", address);
    } catch {
      // A page within another page has no address of its own.
    }
    if ("at" in change) void this.#fetchReceipt();
  }

  /** How the page writes a token. */
  label = (token: string): string => {
    const special = this.machine?.special;
    if (token === "∅" || (token && token === special?.start)) return `‹${this.t.start}›`;
    if (token && token === special?.end) return `‹${this.t.end}›`;
    return tokenText(token) || "␣";
  };

  /** What the rows (0) or columns (1) of a quantity stand for. A row of the decoder leads from the token read to the
   * token written. */
  names(stage: Stage | undefined, side: 0 | 1): string[] {
    const axis = stage?.axes[side];
    const read = this.run ? tokensOf(this.run, axis).map(this.label) : [];
    const written = side === 0 && axis === "T" && !/^(tgt\.|dec\.in$)/.test(stage?.address ?? "");
    return written ? read.map((token, i) => this.arrow(token, i)) : read;
  }
  arrow = (read: string, step: number): string => `${read} → ${this.label(this.run?.steps[step]?.token ?? "")}`;

  isOpen = (card: string): boolean => this.view.cards.includes(card);
  fold(card: string, open: boolean): void {
    const others = this.view.cards.filter((one) => one !== card);
    this.show({ cards: open ? [...others, card] : others });
  }

  type(text: string): void {
    const changes = this.view.changes.filter(([option]) => option !== "pin"); // of the text before
    Object.assign(this.view, { text, sentence: 0, step: -1, word: "", rival: "", other: "", row: -1, changes });
    clearTimeout(this.#timer);
    if (onSite) this.refresh();
    else this.#timer = setTimeout(() => this.refresh(), TYPED);
  }

  change(changes: Change[]): void {
    this.show({ changes }, true);
    this.refresh();
  }

  compute(numbers: string): void {
    this.show({ numbers, at: "" }, true);
    this.refresh();
  }

  /** The model that translates back, by its name: es-en for en-es. */
  reverse(model: string): string | undefined {
    const back = model.split("-").reverse().join("-");
    return back !== model && this.models.includes(back) ? back : undefined;
  }

  /** Another model reads the translation if it translates back, and else an example of its own. */
  choose(model: string): void {
    const { text, model: before, cards } = this.view;
    const back = model === this.reverse(before) ? this.run?.translation : undefined;
    this.visit({ ...EMPTY, text: back || (EXAMPLES[model] ?? text), model, cards: [...cards] });
  }

  /** Go on with another token than the one that was chosen. */
  take(token: string): void {
    const words = [...(this.run?.steps.slice(0, this.step) ?? []).map((step) => step.token), token].join(" ");
    Object.assign(this.view, { step: this.step, word: "", rival: "" });
    this.change([...this.view.changes.filter(([option]) => !["pin", "prefix"].includes(option)), ["pin", words]]);
  }

  /** Another view, with all that it needs computed. */
  visit(view: Partial<View>): void {
    this.show({ ...view, sentence: 0 }, true);
    this.refresh();
  }

  asked(): Asked {
    const { text, model, sentence, changes, numbers } = $state.snapshot(this.view);
    return { text, model, sentence, changes, numbers };
  }

  /** Give up what is being computed: what is on screen stays. */
  stop(): void {
    this.#running?.abort();
    this.#rested();
    const { model, sentence, changes, numbers } = this.shown ?? this.asked();
    this.show({ model, sentence, changes, numbers });
  }

  #rested(): void {
    clearTimeout(this.#slow);
    this.since = 0;
    this.busy = false;
  }

  /** Ask for everything that is on screen anew, and show it when all of it is there. */
  refresh(): void {
    this.#running?.abort();
    this.#rested();
    const running = new AbortController();
    this.#running = running;
    const start = Date.now();
    this.#slow = setTimeout(() => (this.since = start), SLOW);
    void this.#refresh(this.asked(), running.signal).catch((error: unknown) => {
      if (running.signal.aborted) return;
      this.#rested();
      const status = error instanceof api.Refused ? error.status : 0;
      this.keyAsked = status === 401 ? "missing" : status === 403 ? "wrong" : "";
      this.refusal = this.keyAsked ? null : this.#refusalOf(error);
    });
  }

  #refusalOf(error: unknown): Refusal {
    const { t } = this;
    if (error instanceof api.Refused) return new Refusal(error.what, error.found, error.todo);
    if (!onSite) return new Refusal(t.noServer, String(error), t.noServerDo);
    if (navigator.onLine) return new Refusal(t.noPython, String(error), t.noPythonDo);
    return new Refusal(fill(t.offlineModel, { model: this.view.model }), "", t.offlineModelDo);
  }

  async #refresh(asked: Asked, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    this.busy = true;
    const other =
      asked.model !== this.shown?.model ||
      asked.numbers !== this.shown?.numbers ||
      asked.changes.join() !== this.shown?.changes.join();
    if (other && asked.model !== this.shown?.model) this.#wanted.clear();
    const quick = api.translate(asked, signal).then((told) => {
      if (!signal.aborted) [this.translation, this.doubts] = [told.translation ?? "", told.doubts ?? []];
    });
    const [run, machine, tensors] = await Promise.all([
      api.run(asked, signal),
      other ? api.machine(asked, signal) : this.machine,
      api.tensors(asked, [...this.#wanted], signal).catch(() => new Map<string, Tensor>()),
      quick,
    ]);
    if (signal.aborted) return;
    this.#wanted.clear();
    this.#tensors.clear();
    this.#coming.clear();
    for (const [address, tensor] of tensors) this.#tensors.set(address, tensor);
    this.machine = machine;
    this.run = run;
    this.refusal = null;
    this.keyAsked = "";
    this.shown = asked;
    this.#rested();
    this.milliseconds = performance.now() - start;
    this.show({});
    void this.#fetchReceipt();
  }

  /** The numbers at an address, if they are here; else they are asked for, and drawn when they come. */
  tensor(address: string): Tensor | undefined {
    this.#wanted.add(address);
    const here = this.#tensors.get(address);
    if (!here && !this.#missing.has(address) && !this.#coming.has(address)) {
      if (!this.#missing.size) queueMicrotask(() => void this.#fetchMissing());
      this.#missing.add(address);
    }
    return here;
  }

  async #fetchMissing(): Promise<void> {
    const addresses = [...this.#missing];
    const asked = this.shown;
    this.#missing.clear();
    if (!asked) return;
    for (const address of addresses) this.#coming.add(address);
    try {
      const tensors = await api.tensors(asked, addresses, this.#running?.signal);
      const draw = (address: string, tensor: Tensor) => {
        if (asked === this.shown) flushSync(() => this.#tensors.set(address, tensor));
      };
      for (const [address, tensor] of tensors) later(() => draw(address, tensor));
      if (this.alone) for (const address of addresses) if (!tensors.has(address)) this.missing[address] = true;
    } catch {
      if (asked === this.shown) for (const address of addresses) this.#coming.delete(address);
      // Else another run came in between, and asks for its own.
    }
  }

  async #fetchReceipt(): Promise<void> {
    const { at } = this.view;
    const asked = this.shown;
    if (!at || !asked) {
      this.receipt = null;
      return;
    }
    try {
      const told = await api.receipt(asked, at);
      if (this.view.at === at && asked === this.shown) this.receipt = told;
    } catch (error) {
      if (this.view.at !== at || asked !== this.shown) return;
      this.receipt = null;
      this.view.at = "";
      if (error instanceof api.Refused) this.refusal = new Refusal(error.what, error.found, error.todo);
    }
  }

  giveKey(key: string): void {
    api.giveKey(key);
    this.refresh();
  }

  copy(kind: string): Promise<string> {
    return api.copy(this.shown ?? this.asked(), this.view.at, kind);
  }

  /** What Python says, in the reader's language where there is a translation. */
  say = (says: string): string => (this.language === "es" ? inSpanish(says) : says);

  speak(language: Language): void {
    this.language = language;
    document.documentElement.lang = language;
    this.#remember("language", language);
  }

  light(theme: "light" | "dark"): void {
    this.#chosen = theme;
    this.#paint(theme);
    this.#remember("theme", theme);
  }

  #paint(theme: "light" | "dark"): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
  }

  #remember(name: string, value: string): void {
    try {
      localStorage.setItem(`vidrio.${name}`, value);
    } catch {
      // A browser may forbid it; then it holds for this page only.
    }
  }

  #remembered(name: string, otherwise: string): string {
    try {
      return localStorage.getItem(`vidrio.${name}`) ?? otherwise;
    } catch {
      return otherwise;
    }
  }
}

export const page = new Page();

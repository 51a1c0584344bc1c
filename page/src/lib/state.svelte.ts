/** What is on screen: the text, the run, the numbers fetched so far, and what is open. One object, and no library. */

import { flushSync } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import * as api from "./api";
import { EMPTY, readFragment, type View, writeFragment } from "./fragment";
import { later } from "./idle";
import { catalogues, type Language, type Messages } from "./messages";
import { onSite } from "./site";
import type { Tensor } from "./tensors";
import type { Asked, Change, Machine, Receipt, Run, Stage, Step } from "./types";
import { inSpanish } from "./words.es";

const TYPED = 60; // milliseconds without a key press before the server is asked; Python in the browser drops what is no longer wanted
const EXAMPLE = "I bought a new car yesterday.";

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
  receipt: Receipt | null = $state.raw(null);
  refusal: Refusal | null = $state.raw(null);
  busy = $state(false);
  readonly alone = api.alone; // one file, without a server
  playing = $state(false); // the story goes on by itself, from the moment it is asked for
  missing: Record<string, boolean> = $state({}); // not in this file
  milliseconds = $state(0); // from key press to a new overview
  language: Language = $state("en");
  theme: "light" | "dark" = $state("light"); // on paper always light

  readonly t: Messages = $derived(catalogues[this.language]);
  readonly stages: Map<string, Stage> = $derived(new Map((this.machine?.stages ?? []).map((s) => [s.address, s])));
  readonly step: number = $derived(Math.max(0, Math.min(this.view.step, (this.run?.steps.length ?? 1) - 1)));
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
  #shown: Asked | null = null; // what `run` answers

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
    Object.assign(this.view, change);
    const address = writeFragment($state.snapshot(this.view), this.defaultModel);
    try {
      if (address !== location.hash) history[remember ? "pushState" : "replaceState"](null, "", address);
    } catch {
      // A page within another page has no address of its own.
    }
    if ("at" in change) void this.#fetchReceipt();
  }

  type(text: string): void {
    this.view.text = text;
    this.view.sentence = 0;
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

  choose(model: string): void {
    this.show({ ...EMPTY, text: this.view.text, model }, true);
    this.refresh();
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

  /** Ask for everything that is on screen anew, and show it when all of it is there. */
  refresh(): void {
    this.#running?.abort();
    const running = new AbortController();
    this.#running = running;
    void this.#refresh(this.asked(), running.signal).catch((error: unknown) => {
      if (running.signal.aborted) return;
      this.busy = false;
      this.refusal =
        error instanceof api.Refused
          ? new Refusal(error.what, error.found, error.todo)
          : onSite
            ? new Refusal(this.t.noPython, String(error), this.t.noPythonDo)
            : new Refusal(this.t.noServer, String(error), this.t.noServerDo);
    });
  }

  async #refresh(asked: Asked, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    this.busy = true;
    const other =
      asked.model !== this.#shown?.model ||
      asked.numbers !== this.#shown?.numbers ||
      asked.changes.join() !== this.#shown?.changes.join();
    if (other && asked.model !== this.#shown?.model) this.#wanted.clear();
    const quick = api.translate(asked, signal).then((told) => {
      if (!signal.aborted) this.translation = told.translation ?? "";
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
    this.#shown = asked;
    this.busy = false;
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
    const asked = this.#shown;
    this.#missing.clear();
    if (!asked) return;
    for (const address of addresses) this.#coming.add(address);
    try {
      const tensors = await api.tensors(asked, addresses, this.#running?.signal);
      const draw = (address: string, tensor: Tensor) => {
        if (asked === this.#shown) flushSync(() => this.#tensors.set(address, tensor));
      };
      for (const [address, tensor] of tensors) later(() => draw(address, tensor));
      if (this.alone) for (const address of addresses) if (!tensors.has(address)) this.missing[address] = true;
    } catch {
      if (asked === this.#shown) for (const address of addresses) this.#coming.delete(address);
      // Else another run came in between, and asks for its own.
    }
  }

  async #fetchReceipt(): Promise<void> {
    const { at } = this.view;
    const asked = this.#shown;
    if (!at || !asked) {
      this.receipt = null;
      return;
    }
    try {
      const told = await api.receipt(asked, at);
      if (this.view.at === at && asked === this.#shown) this.receipt = told;
    } catch (error) {
      if (this.view.at !== at || asked !== this.#shown) return;
      this.receipt = null;
      this.view.at = "";
      if (error instanceof api.Refused) this.refusal = new Refusal(error.what, error.found, error.todo);
    }
  }

  copy(kind: string): Promise<string> {
    return api.copy(this.#shown ?? this.asked(), this.view.at, kind);
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

/** The page's state: the view, the current run and the tensors fetched so far. */

import { flushSync } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import * as api from "./api";
import { tokenText } from "./format";
import { EMPTY, readFragment, type View, writeFragment } from "./fragment";
import { whenIdle } from "./idle";
import { catalogues, fill, type Language, type Messages } from "./messages";
import { tokensOf } from "./plan";
import { onSite } from "./site";
import { leastCertain } from "./steps";
import type { Tensor } from "./tensors";
import type { Change, FactWarning, Machine, Query, Receipt, Run, Stage, Step } from "./types";
import { inSpanish } from "./words.es";

/** Debounce delay for requests to the server, in milliseconds. The worker drops aborted requests and needs no delay. */
const PAUSE = 60;
const SLOW = 500; // milliseconds before a request counts as slow
const EXAMPLE = "I bought a new car yesterday.";
const EXAMPLES = new Map([
  ["en-es", EXAMPLE],
  ["es-en", "Ayer compré un coche nuevo."],
  ["lesson", "hello world"],
  ["worked-example", "hello world"],
  ["worked-example-printed", "hello world"],
]);

class Page {
  view: View = $state({ ...EMPTY });
  models: string[] = $state([]);
  defaultModel = $state("");
  machine: Machine | null = $state.raw(null);
  run: Run | null = $state.raw(null);
  translation = $state("");
  warnings: FactWarning[] = $state.raw([]);
  query: Query | null = $state.raw(null); // the query that produced `run`
  receipt: Receipt | null = $state.raw(null);
  refusal: api.Refusal | null = $state.raw(null);
  keyNeeded: "" | "missing" | "wrong" = $state(""); // the problem with the API key, if any
  busy = $state(false);
  slowSince = $state(0); // when the current request started, if it is slow; otherwise 0
  readonly standalone = api.standalone;
  playing = $state(false); // whether the story starts playing when it opens
  absent: Record<string, boolean> = $state({}); // the tensors missing from a standalone file
  language: Language = $state("en");
  theme: "light" | "dark" = $state("light"); // the displayed theme, which is always light in print

  readonly t: Messages = $derived(catalogues[this.language]);
  readonly stages: Map<string, Stage> = $derived(new Map((this.machine?.stages ?? []).map((s) => [s.address, s])));
  readonly firstStep: number = $derived(this.run ? leastCertain(this.run, this.machine?.special.end) : 0);
  readonly last: number = $derived((this.run?.steps.length ?? 1) - 1);
  readonly step: number = $derived(
    Math.max(0, Math.min(this.view.step < 0 ? this.firstStep : this.view.step, this.last)),
  );
  readonly currentStep: Step | undefined = $derived(this.run?.steps[this.step]);
  readonly edited: boolean = $derived(this.view.changes.length > 0);

  #theme: "light" | "dark" = "light"; // the user's choice
  #tensors = new SvelteMap<string, Tensor>();
  #drawn = new Set<string>(); // tensors on screen, fetched along with the next run so that the page changes all at once
  #unrequested = new Set<string>(); // tensors to request in the next microtask
  #requested = new Set<string>();
  #running: AbortController | null = null;
  #typing = 0;
  #slow = 0;

  /** Loads the stored language and theme, which default to the system settings. */
  #loadPreferences(): void {
    this.language = this.#stored("language", navigator.language.startsWith("es") ? "es" : "en") as Language;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.#theme = this.#stored("theme", dark ? "dark" : "light") as "light" | "dark";
    document.documentElement.lang = this.language;
    this.#paint(this.#theme);
    addEventListener("beforeprint", () => flushSync(() => this.#paint("light")));
    addEventListener("afterprint", () => this.#paint(this.#theme));
  }

  async start(): Promise<void> {
    this.#loadPreferences();
    const { default: first, models } = await api.models();
    this.defaultModel = first || (this.#embedded().model ?? "");
    this.models = models.length ? models : [this.defaultModel];
    this.#readAddress();
    addEventListener("popstate", () => this.#readAddress());
    addEventListener("hashchange", () => this.#readAddress());
  }

  #readAddress(): void {
    const given = readFragment(location.hash);
    const text = EXAMPLES.get(given.model ?? this.defaultModel) ?? EXAMPLE;
    const view = { ...EMPTY, model: this.defaultModel, text, ...given, ...this.#embedded() };
    if (JSON.stringify(view) === JSON.stringify($state.snapshot(this.view))) return;
    this.view = view;
    this.refresh();
  }

  /** Returns the view settings that are fixed in a standalone file, regardless of its URL. */
  #embedded(): Partial<View> {
    const { data } =
      (globalThis as { vidrio?: { data: { run: Run; changes: Change[]; machine: Machine } } }).vidrio ?? {};
    return data
      ? { text: data.run.text, changes: data.changes, model: data.machine.name, numbers: "", sentence: 0 }
      : {};
  }

  /** Changes the view. With `remember`, the browser's Back button returns to the previous view. */
  show(change: Partial<View>, remember = false): void {
    Object.assign(this.view, "step" in change ? { rival: "", word: "" } : {}, change); // specific to a step
    const address = writeFragment($state.snapshot(this.view), this.defaultModel);
    try {
      if (address !== location.hash) history[remember ? "pushState" : "replaceState"](null, "", address);
    } catch {
      // Some browsers do not allow an embedded page to change its URL.
    }
    if ("at" in change) void this.#fetchReceipt();
  }

  label = (token: string): string => {
    const special = this.machine?.special;
    if (token === "∅" || (token && token === special?.start)) return `‹${this.t.start}›`;
    if (token && token === special?.end) return `‹${this.t.end}›`;
    return tokenText(token) || "␣";
  };

  /** Returns row labels (side 0) or column labels (side 1). Decoder rows are labelled with input and output tokens. */
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
    const changes = this.view.changes.filter(([option]) => option !== "pin"); // pins apply only to the old text
    Object.assign(this.view, { text, sentence: 0, step: -1, word: "", rival: "", other: "", row: -1, changes });
    clearTimeout(this.#typing);
    if (onSite) this.refresh();
    else this.#typing = setTimeout(() => this.refresh(), PAUSE);
  }

  change(changes: Change[]): void {
    this.show({ changes }, true);
    this.refresh();
  }

  setArithmetic(numbers: string): void {
    this.show({ numbers, at: "" }, true);
    this.refresh();
  }

  /** Returns the model for the opposite direction, such as es-en for en-es, if there is one. */
  reverse(model: string): string | undefined {
    const back = model.split("-").reverse().join("-");
    return back !== model && this.models.includes(back) ? back : undefined;
  }

  /** Switches the model. If this reverses the direction, the translation becomes the input. */
  switchModel(model: string): void {
    const { text, model: before, cards } = this.view;
    const back = model === this.reverse(before) ? this.run?.translation : undefined;
    this.visit({ ...EMPTY, text: back || (EXAMPLES.get(model) ?? text), model, cards: [...cards] });
  }

  /** Replaces the token at the current step and lets the model continue from there. */
  continueWith(token: string): void {
    const before = (this.run?.steps.slice(0, this.step) ?? []).map((step) => step.token);
    Object.assign(this.view, { step: this.step, word: "", rival: "" });
    this.startWith(["pin", [...before, token].join(" ")]);
  }

  /** Forces the translation to start with the given tokens or words. If `change` is omitted, removes the constraint. */
  startWith(change?: Change): void {
    const others = this.view.changes.filter(([option]) => option !== "pin" && option !== "prefix");
    this.change(change ? [...others, change] : others);
  }

  visit(view: Partial<View>): void {
    this.show({ ...view, sentence: 0 }, true);
    this.refresh();
  }

  nextQuery(): Query {
    const { text, model, sentence, changes, numbers } = $state.snapshot(this.view);
    return { text, model, sentence, changes, numbers };
  }

  /** Cancels the in-flight request and restores the settings of the displayed run. */
  stop(): void {
    this.#running?.abort();
    this.#running = null;
    this.#stopped();
    const { text, model, sentence, changes, numbers } = this.query ?? this.nextQuery();
    const given = model === this.view.model ? this.view.text : text; // a text that was typed stays
    this.show({ text: given, model, sentence, changes, numbers });
  }

  #stopped(): void {
    clearTimeout(this.#slow);
    this.slowSince = 0;
    this.busy = false;
  }

  /**
   * Requests everything on screen again. The translation is updated as soon as it arrives, and the rest of the page
   * when all responses have arrived.
   */
  refresh(): void {
    this.#running?.abort();
    this.#stopped();
    const running = new AbortController();
    this.#running = running;
    const start = Date.now();
    this.#slow = setTimeout(() => (this.slowSince = start), SLOW);
    void this.#refresh(this.nextQuery(), running.signal).catch((error: unknown) => {
      if (running.signal.aborted) return;
      this.#stopped();
      const refusal = this.#refusalOf(error);
      this.keyNeeded = refusal.status === 401 ? "missing" : refusal.what === "Invalid API key" ? "wrong" : "";
      this.refusal = this.keyNeeded ? null : refusal;
    });
  }

  #refusalOf(error: unknown): api.Refusal {
    const { t } = this;
    if (error instanceof api.Refusal) return error;
    if (!onSite) return new api.Refusal(t.noServer, String(error), t.noServerDo);
    if (navigator.onLine) return new api.Refusal(t.noPython, String(error), t.noPythonDo);
    return new api.Refusal(fill(t.offlineModel, { model: this.view.model }), "", t.offlineModelDo);
  }

  async #refresh(query: Query, signal: AbortSignal): Promise<void> {
    this.busy = true;
    const otherModel = query.model !== this.query?.model;
    const otherMachine =
      otherModel || query.numbers !== this.query?.numbers || query.changes.join() !== this.query?.changes.join();
    if (otherModel) this.#drawn.clear();
    const translated = api.translate(query, signal).then(({ translation, warnings }) => {
      if (!signal.aborted) [this.translation, this.warnings] = [translation ?? "", warnings ?? []];
    });
    const [run, machine, tensors] = await Promise.all([
      api.run(query, signal),
      otherMachine ? api.machine(query, signal) : this.machine,
      api.tensors(query, [...this.#drawn], signal).catch(() => new Map<string, Tensor>()),
      translated,
    ]);
    if (signal.aborted) return;
    this.#drawn.clear();
    this.#tensors.clear();
    this.#requested.clear();
    for (const [address, tensor] of tensors) this.#tensors.set(address, tensor);
    this.machine = machine;
    this.run = run;
    this.refusal = null;
    this.keyNeeded = "";
    this.query = query;
    this.#stopped();
    this.show({});
    void this.#fetchReceipt();
  }

  /** Returns a tensor. If the tensor has not been loaded yet, requests it and returns undefined. */
  tensor(address: string): Tensor | undefined {
    this.#drawn.add(address);
    const tensor = this.#tensors.get(address);
    if (!tensor && !this.#unrequested.has(address) && !this.#requested.has(address)) {
      if (!this.#unrequested.size) queueMicrotask(() => void this.#fetchTensors());
      this.#unrequested.add(address);
    }
    return tensor;
  }

  async #fetchTensors(): Promise<void> {
    const addresses = [...this.#unrequested];
    const query = this.query;
    this.#unrequested.clear();
    if (!query) return;
    for (const address of addresses) this.#requested.add(address);
    try {
      const tensors = await api.tensors(query, addresses, this.#running?.signal);
      const draw = (address: string, tensor: Tensor) => {
        if (query === this.query) flushSync(() => this.#tensors.set(address, tensor));
      };
      for (const [address, tensor] of tensors) whenIdle(() => draw(address, tensor));
      if (this.standalone) for (const address of addresses) if (!tensors.has(address)) this.absent[address] = true;
    } catch {
      // Allow a retry, unless a newer run has started, which makes its own requests.
      if (query === this.query) for (const address of addresses) this.#requested.delete(address);
    }
  }

  async #fetchReceipt(): Promise<void> {
    const { at } = this.view;
    const query = this.query;
    if (!at || !query) {
      this.receipt = null;
      return;
    }
    const current = () => this.view.at === at && query === this.query;
    try {
      const receipt = await api.receipt(query, at);
      if (current()) this.receipt = receipt;
    } catch (error) {
      if (!current()) return;
      this.show({ at: "" });
      if (error instanceof api.Refusal) this.refusal = error;
    }
  }

  giveKey(key: string): void {
    api.giveKey(key);
    this.refresh();
  }

  /** Returns the open receipt's arithmetic as text, or an empty string if the request fails. */
  async copy(kind: string): Promise<string> {
    try {
      return await api.copy(this.query ?? this.nextQuery(), this.view.at, kind);
    } catch (error) {
      this.refusal = this.#refusalOf(error);
      return "";
    }
  }

  /** Translates a message from Python into the user's language, or returns it unchanged if there is no translation. */
  say = (text: string): string => (this.language === "es" ? inSpanish(text) : text);

  setLanguage(language: Language): void {
    this.language = language;
    document.documentElement.lang = language;
    this.#store("language", language);
  }

  setTheme(theme: "light" | "dark"): void {
    this.#theme = theme;
    this.#paint(theme);
    this.#store("theme", theme);
  }

  #paint(theme: "light" | "dark"): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
  }

  #store(name: string, value: string): void {
    try {
      localStorage.setItem(`vidrio.${name}`, value);
    } catch {
      // If the browser blocks storage, the choice lasts until the page is closed.
    }
  }

  #stored(name: string, otherwise: string): string {
    try {
      return localStorage.getItem(`vidrio.${name}`) ?? otherwise;
    } catch {
      return otherwise;
    }
  }
}

export const page = new Page();

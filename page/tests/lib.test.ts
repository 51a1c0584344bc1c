import { describe, expect, it } from "vitest";
import { colourOf, inkOn, mostlyBelow } from "../src/lib/colour";
import { wordDiff } from "../src/lib/diff";
import { inFull, isRight, percent, textOf, written } from "../src/lib/format";
import { EMPTY, readFragment, writeFragment } from "../src/lib/fragment";
import { catalogues } from "../src/lib/messages";
import { blockOf, headOf, neighboursOf, partsOf, symbolOf, towers } from "../src/lib/plan";
import { firstWord, leastCertain } from "../src/lib/steps";
import { cellAddress, columnsOf, readTensors, rowsOf, valueAt } from "../src/lib/tensors";
import { layOut } from "../src/lib/tree";
import type { Machine, Origin, Run, Side, Stage, Why } from "../src/lib/types";
import { partsOf as originParts, quantityOf, titleOf } from "../src/lib/why";

describe("numbers", () => {
  it("are formatted with four decimals and a Unicode minus sign; NaN and infinity have names", () => {
    expect(written(-0.12345)).toBe("−0.1235");
    expect(written(3)).toBe("3");
    expect(written(0.00001234)).toBe("1.23e−5");
    expect(written(0.00001234, 3)).toBe("1.2e−5");
    expect(written(0.00001234, 1)).toBe("1e−5");
    expect(written("NaN")).toBe("NaN");
    expect(written("-inf")).toBe("−∞");
    expect(inFull(-11.985615051649924)).toBe("−11.985615051649924");
    expect(percent(0.8238)).toBe("82.4 %");
    expect(percent(0.00001)).toBe("< 0.1 %");
  });
});

describe("tokens", () => {
  it("become text as Python writes it", () => {
    expect(textOf(["⇧", "▁el", "▁jard", "ín", "▁de", "⇪", "▁nasa", "."])).toBe("El jardín de NASA.");
    expect(textOf(["▁de", "⇧", "▁mc", "⇧", "donald"])).toBe("de McDonald");
    expect(textOf(["<s>", "⇧", "▁hola", "⇧"])).toBe("<s> Hola");
  });
});

describe("tensors", () => {
  function file(header: object, data: number[]): ArrayBuffer {
    const text = new TextEncoder().encode(JSON.stringify(header));
    const buffer = new ArrayBuffer(8 + text.length + 8 * data.length);
    new DataView(buffer).setBigUint64(0, BigInt(text.length), true);
    new Uint8Array(buffer).set(text, 8);
    new Uint8Array(buffer).set(new Uint8Array(new Float64Array(data).buffer), 8 + text.length);
    return buffer;
  }

  it("are read out of a safetensors file", () => {
    const tensors = readTensors(file({ a: { dtype: "F64", shape: [2, 2], data_offsets: [0, 32] } }, [1, 2, 3, 4.5]));
    const a = tensors.get("a");
    expect(a && [rowsOf(a), columnsOf(a), valueAt(a, 1, 1)]).toEqual([2, 2, 4.5]);
    expect(a && cellAddress("enc.0.self.Q.h1", a, 1, 0)).toBe("enc.0.self.Q.h1[1,0]");
  });

  it("draw a vector as one row", () => {
    const v = { shape: [3], data: new Float64Array([7, 8, 9]) };
    expect([rowsOf(v), columnsOf(v), valueAt(v, 0, 2), cellAddress("x.mean", v, 0, 2)]).toEqual([1, 3, 9, "x.mean[2]"]);
  });
});

describe("the address bar", () => {
  it("brings back what it was given, hostile strings too", () => {
    const view = {
      ...EMPTY,
      text: 'a & b = "<img onerror=x>" #é',
      model: "lesson",
      step: 3,
      row: 0,
      story: 7,
      lesson: "nan/2",
      attention: "enc.2.self",
      only: 3,
      cards: ["search", "whatif"],
      at: "out.prob[5]@0",
      changes: [["set", "enc.0.self.WQ.h0[0,0]=1:2"]] as [string, string][],
    };
    expect({ ...EMPTY, ...readFragment(writeFragment(view, "en-es")) }).toEqual(view);
  });

  it("ignores invalid numbers", () => {
    expect(readFragment("#step=-1&head=x&sentence=1.5")).toEqual({});
  });
});

describe("colours", () => {
  it("differ for negative, zero, positive, masked and NaN", () => {
    const colours = [-1, 0, 1, Number.NaN, -Infinity].map((x) => colourOf(x, 1, "signed", "light").join());
    expect(new Set(colours).size).toBe(5);
  });

  it("give text a contrast of at least 4.5", () => {
    for (const theme of ["light", "dark"] as const) {
      for (const scale of ["signed", "share"] as const) {
        for (let x = -1; x <= 1; x += 0.02) {
          const colour = colourOf(x, 1, scale, theme);
          expect(contrast(colour, inkOn(colour))).toBeGreaterThan(4.5);
        }
      }
    }
  });

  it("are not spoilt by a few huge numbers", () => {
    expect(mostlyBelow(Array.from({ length: 100 }, (_, i) => (i === 7 ? 1e6 : 1)))).toBe(1);
  });
});

function contrast(background: readonly number[], ink: string): number {
  const front = [1, 3, 5].map((i) => Number.parseInt(ink.slice(i, i + 2), 16));
  const luminance = (rgb: readonly number[]) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
  };
  const [low, high] = [luminance(background), luminance(front)].sort((x, y) => x - y);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

describe("the plan of the machine", () => {
  const stage = (address: string, axes: string): Stage => ({
    address,
    axes,
    kind: "value",
    operation: "",
    inputs: [],
    formula: "",
    latex: "",
    place: "",
    says: "",
    code: "",
  });
  const machine = {
    shape: "encoder-decoder",
    norm: "pre",
    layers: { enc: 1, dec: 1 },
    sizes: { H: 2 },
    stages: [
      ["enc.in", "SD"],
      ["enc.0.self.Q.h0", "SK"],
      ["enc.0.self.sum", "SD"],
      ["enc.0.ffn.sum", "SD"],
      ["memory", "SD"],
      ["dec.in", "TD"],
      ["dec.0.self.sum", "TD"],
      ["dec.0.cross.sum", "TD"],
      ["dec.0.ffn.sum", "TD"],
      ["dec.out", "TD"],
      ["out.prob", "TV"],
    ].map(([address, axes]) => stage(address ?? "", axes ?? "")),
  } as unknown as Machine;

  it("has a block for each layer of both towers", () => {
    const { enc, dec } = towers(machine);
    expect(enc.map(({ id }) => id)).toEqual(["src", "enc.0", "memory"]);
    expect(dec.map(({ id }) => id)).toEqual(["tgt", "dec.0", "dec.out", "out"]);
    expect(dec[1]?.strips.map(({ part }) => part)).toEqual(["masked", "cross", "ffn"]);
  });

  it("knows what a block is made from and what is made from it", () => {
    const inputs: Record<string, string[]> = {
      "enc.0.self.Q.h0": ["enc.in"],
      memory: ["enc.0.ffn.sum"],
      "dec.0.cross.sum": ["memory", "dec.0.self.sum"],
      "dec.0.self.sum": ["dec.in"],
      "dec.out": ["dec.0.ffn.sum"],
    };
    const stages = machine.stages.map((one) => ({ ...one, inputs: inputs[one.address] ?? [] }));
    expect(neighboursOf({ ...machine, stages }, "dec.0")).toEqual({ from: ["tgt", "memory"], to: ["dec.out"] });
  });

  it("finds the parts of a layer and the block of a quantity", () => {
    expect(partsOf(machine, "enc.0").map(({ name }) => name)).toEqual(["self", "ffn"]);
    expect(["dec.0.cross.weights.h1", "out.logits", "enc.norm.mean", "tgt.ids"].map(blockOf)).toEqual([
      "dec.0",
      "out",
      "memory",
      "tgt",
    ]);
    expect([headOf("enc.0.self.Q.h3"), headOf("enc.0.self.out")]).toEqual([3, null]);
    expect(["enc.0.self.Q.h3", "enc.0.self.norm.out", "src.ids"].map(symbolOf)).toEqual(["Q", "norm.out", "src.ids"]);
  });
});

const SAME = ["bytes", "embedding", "exp", "id", "integer", "logP", "logit", "python", "sha256", "tensor"];

describe("both languages", () => {
  it("have the same entries, none empty", () => {
    const keys = (value: object): string[] =>
      Object.entries(value).flatMap(([k, v]) => (typeof v === "string" ? [k] : [k, ...keys(v as object)]));
    expect(keys(catalogues.es).sort()).toEqual(keys(catalogues.en).sort());
  });

  it("say the same only where the word is the same", () => {
    const words = (value: object): [string, string][] =>
      Object.entries(value).flatMap(([k, v]) =>
        typeof v === "string" ? [[k, v] as [string, string]] : words(v as object),
      );
    const spanish = new Map(words(catalogues.es));
    const same = words(catalogues.en).filter(([key, english]) => spanish.get(key) === english);
    expect(same.map(([key]) => key).sort()).toEqual(SAME);
  });
});

describe("the words that a change replaces", () => {
  const marked = (before: string, after: string) =>
    wordDiff(before, after).map(([kind, word]) => `${{ same: "", deleted: "-", inserted: "+" }[kind]}${word}`);

  it("are marked, and no others", () => {
    expect(marked("Ayer compré un coche nuevo.", "Compré un coche nuevo ayer.")).toEqual([
      "-Ayer",
      "-compré",
      "+Compré",
      "un",
      "coche",
      "-nuevo.",
      "+nuevo",
      "+ayer.",
    ]);
    expect(marked("un coche", "un coche")).toEqual(["un", "coche"]);
  });
});

describe("the first step shown", () => {
  const step = (token: string, p: number) => ({ token, id: 0, best: [{ token, p, taken: true }] });
  const run = { steps: [step("⇧", 0.2), step("▁ayer", 0.8), step("▁coche", 0.6), step(".", 0.1), step("EOS", 0.3)] };

  it("is that of the least certain word, not of a sign", () => {
    expect(leastCertain(run as unknown as Run, "EOS")).toBe(2);
    expect(firstWord(run as unknown as Run, "EOS")).toBe(1);
    expect(leastCertain({ steps: [] } as unknown as Run)).toBe(0);
  });
});

describe("the search tree", () => {
  const node = (parent: number, depth: number, rank: number, fate: "kept" | "dropped" | "finished") => ({
    word: "",
    parent,
    depth,
    log_prob: 0,
    total: 0,
    score: 0,
    rank,
    fate,
    why: "",
  });
  const nodes = [
    node(-1, 0, 1, "kept"),
    node(-1, 0, 2, "kept"),
    node(-1, 0, 3, "dropped"),
    node(1, 1, 1, "finished"),
    node(0, 1, 2, "kept"),
  ];

  it("keeps the best hypothesis in the first row and omits hypotheses that were dropped immediately", () => {
    const { placed, rows } = layOut(nodes, 3, false);
    expect(rows).toBe(2);
    expect(placed.filter(({ best }) => best).map(({ index, row }) => [index, row])).toEqual([
      [1, 0],
      [3, 0],
    ]);
    expect(layOut(nodes, 3, true).placed).toHaveLength(5);
  });
});

describe("pencil mode", () => {
  it("takes an answer as right to the decimals that it has", () => {
    expect(["11.99", "11.986", "12", "11,98562"].map((answer) => isRight(answer, 11.985615))).toEqual(
      Array(4).fill(true),
    );
    expect(isRight("0", 0.0011)).toBe(false);
    expect(isRight("0", 0)).toBe(true);
    expect(["11.98", "", "x", "-11.99"].map((answer) => isRight(answer, 11.985615))).toEqual(Array(4).fill(false));
    expect([isRight("-inf", "-inf"), isRight("∞", "inf"), isRight("nan", "NaN")]).toEqual(Array(3).fill(true));
    expect([isRight("inf", "-inf"), isRight("nan", 0), isRight("0", "NaN")]).toEqual(Array(3).fill(false));
  });
});

describe("why a word", () => {
  const part = (name: string, value: number, origin: string, side: Side = null, row: number | null = null) => ({
    name,
    value,
    side,
    row,
    token: side && origin,
    origin,
  });
  const why = {
    parts: [
      part("dec.1.cross.h0[5]", -1, "▁car", "source", 5),
      part("dec.1.cross.h3[5]", 2, "▁car", "source", 5),
      part("dec.1.self.h0[5]", 9, "▁car", "target", 5),
      part("dec.0.ffn", 1, "feed-forward networks"),
      part("dec.norm.bias", 4, "biases and positions"),
    ],
  } as Why;
  it("has its parts by where they come from, the largest first", () => {
    const names = (origin: Pick<Origin, "side" | "row" | "name">) =>
      originParts(why, origin as Origin).map(({ name }) => name);
    expect(names({ side: "source", row: 5, name: "▁car" })).toEqual(["dec.1.cross.h3[5]", "dec.1.cross.h0[5]"]);
    expect(names({ side: null, row: null, name: "feed-forward networks" })).toEqual(["dec.0.ffn"]);
    expect(names({ side: null, row: null, name: "biases and positions" })).toEqual(["dec.norm.bias"]);
  });
  it("leads to quantities of the model", () => {
    expect(quantityOf("dec.1.cross.h3[5]", 4)).toEqual({
      quantity: "dec.1.cross.weights.h3",
      weight: "dec.1.cross.weights.h3[4,5]",
    });
    expect(quantityOf("enc.0.self.h1[2]", 0).weight).toBe(""); // a classifier's part is a sum over all rows
    const quantities = [
      "dec.1.ffn",
      "tgt.embedding[2]",
      "dec.norm.bias",
      "dec.0.self.bO",
      "dec.0.ssru[1]",
      "tgt.positions",
    ];
    expect(quantities.map((name) => quantityOf(name, 0).quantity)).toEqual([
      "dec.1.ffn.out",
      "tgt.scaled",
      "dec.norm.out",
      "dec.0.self.out",
      "dec.0.ssru.cell",
      "tgt.positions",
    ]);
    expect(quantityOf("rounding", 0)).toEqual({ quantity: "", weight: "" });
    expect(titleOf("dec.1.cross.h3[5]", catalogues.en)).toBe("Layer 1: Cross-attention, head 3");
    expect(titleOf("tgt.positions", catalogues.en)).toBe("tgt.positions");
  });
});

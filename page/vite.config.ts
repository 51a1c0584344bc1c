import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = import.meta.dirname;
const ALONE = ["index.html", "package-lock.json", "package.json", "vite.config.ts"];

/** Adds a hash of the sources to the bundle, so that a test can tell without Node whether the bundle is up to date. */
function sourcesHash(): Plugin {
  const under = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? under(join(folder, entry.name)) : [join(folder, entry.name)],
    );
  return {
    name: "sources-hash",
    generateBundle() {
      const files = [...under(join(here, "src")), ...ALONE.map((name) => join(here, name))];
      const named = files.map((file) => [relative(here, file).replaceAll("\\", "/"), file] as const);
      named.sort(([a], [b]) => (a < b ? -1 : 1));
      const hash = createHash("sha256");
      for (const [name, file] of named) hash.update(`${name}\0`).update(readFileSync(file)).update("\0");
      this.emitFile({ type: "asset", fileName: "built-from.txt", source: `${hash.digest("hex")}\n` });
      const unfold = readFileSync(join(here, "src/alone/unfold.js"), "utf8").replace(/^\s*\/\/.*\n/gm, "");
      this.emitFile({ type: "asset", fileName: "alone/unfold.js", source: unfold });
    },
  };
}

/** Drops KaTeX's woff and ttf fonts, because all browsers that can run the page support woff2. */
function onlyWoff2(): Plugin {
  return {
    name: "only-woff2",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes("katex") || !id.includes(".css")) return null;
      return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\(["'](?:woff|truetype)["']\)/g, "");
    },
  };
}

const UNUSED =
  /KaTeX_(?:Caligraphic|Fraktur|SansSerif|Script|Typewriter|Main-BoldItalic|Math-BoldItalic|AMS)|latin-ext/;

/** Drops fonts that no formula uses, to keep standalone files small. */
function fewFonts(): Plugin {
  return {
    name: "few-fonts",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes(".css")) return null;
      return code.replace(/@font-face\s*\{[^}]*\}/g, (face) => (UNUSED.test(face) ? "" : face));
    },
  };
}

/** Builds the page of standalone files, or the worker of static sites, as a single script and stylesheet. */
function alone(name: string) {
  return defineConfig({
    plugins: [onlyWoff2(), fewFonts(), svelte()],
    publicDir: false,
    build: {
      outDir: "../src/vidrio/serve/page/alone",
      emptyOutDir: false,
      assetsInlineLimit: 1 << 20,
      cssCodeSplit: false,
      modulePreload: false,
      target: "es2022",
      rollupOptions: {
        input: join(here, `src/alone/${name}.ts`),
        output: {
          format: "iife",
          codeSplitting: false,
          entryFileNames: `${name}.js`,
          assetFileNames: `${name}[extname]`,
        },
      },
    },
  });
}

const served = defineConfig({
  base: "./",
  plugins: [onlyWoff2(), svelte(), sourcesHash()],
  build: {
    outDir: "../src/vidrio/serve/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
  test: { include: ["tests/**/*.test.ts"] },
});

export default defineConfig(({ mode }) => (mode.startsWith("alone-") ? alone(mode.slice(6)) : served));

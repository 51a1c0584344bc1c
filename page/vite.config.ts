import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = import.meta.dirname;
const ALONE = ["index.html", "package-lock.json", "package.json", "vite.config.ts"];

/** What the bundle was built from, so that a machine without Node can tell whether it is up to date. */
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
    },
  };
}

/** Browsers that run this page read woff2: the older copies of KaTeX's fonts stay out of the package. */
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

export default defineConfig({
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

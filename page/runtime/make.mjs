// Builds a minimal Python for the browser: `npm ci && npm run make` writes ../../src/vidrio/site/runtime.
//
// CPython is Pyodide's build, and NumPy is emscripten-forge's. Both come from npm, pinned by hash in package-lock.json.
// The same Python compiles all modules, without docstrings. Modules that the page cannot reach are left out. The output
// is reproducible.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const here = import.meta.dirname;
const to = join(here, "../../src/vidrio/site/runtime");
const pyodide = join(here, "node_modules/pyodide");
const numpy = join(here, "node_modules/@emscripten-forge/numpy/pkg");
const unpacked = join(here, "node_modules/.numpy");

rmSync(unpacked, { recursive: true, force: true });
mkdirSync(unpacked, { recursive: true });
execFileSync("tar", ["-xzf", join(numpy, "numpy-2.1.1-py311hc8e14bb_0.tar.gz"), "-C", unpacked]);

const { loadPyodide } = createRequire(import.meta.url)(join(pyodide, "pyodide.js"));
const python = await loadPyodide({ indexURL: `${pyodide}/` });
const mount = (root, at) => {
  python.FS.mkdirTree(at);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, at);
};
mount(pyodide, "/from/pyodide");
mount(unpacked, "/from/numpy");
mount(here, "/from/here");
const made = python.runPython(readFileSync(join(here, "make.py"), "utf8"));
const write = (name, bytes) => {
  const packed = gzipSync(bytes, { level: 9 });
  packed[9] = 255; // unknown operating system, so that the output is reproducible
  writeFileSync(join(to, name), packed);
  console.log(`${packed.length.toLocaleString().padStart(10)}  ${name}`);
};
rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
const [stdlib, packages] = made.toJs();
write("python_stdlib.zip.gz", stdlib);
write("packages.pack.gz", packages);
for (const name of ["pyodide.asm.wasm", "pyodide.asm.js", "pyodide.js"]) {
  // Remove the references to source maps, which are not included.
  const bytes = readFileSync(join(pyodide, name));
  write(`${name}.gz`, name.endsWith("js") ? bytes.toString().replace(/\/\/# sourceMappingURL=.*\s*$/, "") : bytes);
}
copyFileSync(join(here, "LICENSES.md"), join(to, "LICENSES.md"));
const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8")).packages;
const names = ["pyodide", "@emscripten-forge/numpy"];
const from = names.map((name) => [name, lock[`node_modules/${name}`]]);
const lines = from.map(([name, { version, integrity }]) => `${name}@${version} ${integrity}`);
const files = ["python_stdlib.zip.gz", "packages.pack.gz", "pyodide.asm.wasm.gz", "pyodide.asm.js.gz", "pyodide.js.gz"];
for (const name of files)
  lines.push(`${createHash("sha256").update(readFileSync(join(to, name))).digest("hex")}  ${name}`);
writeFileSync(join(to, "made-from.txt"), `${lines.join("\n")}\n`);

// Runs the engine without a server, imports or a shim, in a page that tests/test_engine_builds.py writes.
// `given` contains modules, sizes, tensors, data and options (in base64), and sentences (lists of ids).
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

async function translate(given, module) {
  const { instance } = await WebAssembly.instantiate(bytes(module), {});
  const engine = instance.exports;
  engine._initialize();
  const put = (data) => {
    const place = engine.malloc(data.length + 8);
    new Uint8Array(engine.memory.buffer).set(data, place);
    return place;
  };
  const whole = (ids) => put(new Uint8Array(Int32Array.from(ids).buffer));
  const data = bytes(given.data);
  const tensors = bytes(given.tensors);
  const model = engine.model_load(put(bytes(given.sizes)), put(tensors), tensors.length / 24, put(data), data.length);
  const search = engine.search_new(model, 32);
  const options = put(bytes(given.options));
  const sentences = given.sentences.map((ids) => engine.search_add(search, whole(ids), ids.length, options, 0, 0, 0, 0, 0, 0));
  while (engine.search_run(search, 100));
  return sentences.map((sentence) => {
    const best = engine.sentence_found(sentence, 0);
    const [length] = new Int32Array(engine.memory.buffer, best, 1);
    const tokens = new Int32Array(engine.memory.buffer, engine.hypothesis_tokens(best), 3 * length);
    return [0, 2].map((part) => [...tokens].filter((_, n) => n % 3 === part)); // ids and bits of log p
  });
}

Promise.all(given.modules.map((module) => translate(given, module))).then(
  (found) => (document.body.textContent = JSON.stringify(found)),
  (error) => (document.body.textContent = String(error)),
);

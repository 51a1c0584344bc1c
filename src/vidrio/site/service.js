// Caches the page, so that it works offline. The page's worker caches the files that Python needs.
const version = "VERSION";
const shell = "SHELL";
const files = "FILES";
const store = `vidrio-${version} ${registration.scope}`; // several sites may share an origin

addEventListener("install", (event) => {
  const fresh = shell.map((path) => new Request(path, { cache: "reload" }));
  event.waitUntil(caches.open(store).then((held) => held.addAll(fresh)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const tidied = async () => {
    const ours = (name) => /^vidrio-[0-9a-f]+ /.test(name) && name.endsWith(` ${registration.scope}`);
    const old = (await caches.keys()).filter((name) => ours(name) && name !== store);
    await Promise.all(old.map((name) => caches.delete(name)));
    const held = await caches.open("vidrio-unpacked");
    const wanted = new Set(files.map((path) => new URL(path, registration.scope).href));
    for (const request of await held.keys()) {
      const ours = request.url.startsWith(registration.scope);
      if (ours && !wanted.has(request.url.replace(/\?.*/, ""))) await held.delete(request);
    }
    await clients.claim();
  };
  event.waitUntil(tidied());
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(registration.scope)) return;
  const answer = async () =>
    (await (await caches.open(store)).match(request, { ignoreSearch: true })) ?? (await fetch(request));
  event.respondWith(answer());
});

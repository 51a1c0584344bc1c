/** How far Python is in the browser: bytes loaded of all, and whether it answers. */
export const loading = $state({ done: 0, total: 0, ready: false });

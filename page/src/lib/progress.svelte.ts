/** How much of Python and the model the browser has loaded, in bytes, and whether Python is ready. */
export const progress = $state({ done: 0, total: 0, ready: false });

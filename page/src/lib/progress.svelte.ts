/** The download progress of Python and the model, in bytes, and whether Python is ready. */
export const progress = $state({ done: 0, total: 0, ready: false });

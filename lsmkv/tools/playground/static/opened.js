// The folder that is open, for the inspector's pages.

/** `engine` answers for it; `name` is shown. */
export const opened = { engine: null, name: "" };

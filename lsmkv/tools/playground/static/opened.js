// The folder that is open, for the inspector's pages.

/** `engine` answers for it, `name` is shown, and `files` are its files, `{name, file}` each. */
export const opened = { engine: null, name: "", files: [] };

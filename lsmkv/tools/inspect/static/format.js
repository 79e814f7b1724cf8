// Figures as text, as the command prints them.

/** Bytes with their unit. */
export function bytes(size) {
  if (size < 1024) return `${size} B`;
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${size.toFixed(1)} ${unit}`;
}

/** A number with thousands separated. */
export function number(value) {
  return value.toLocaleString("en");
}

/** A number and its noun, in the plural where it must be. */
export function count(value, noun) {
  if (value === 1) return `1 ${noun}`;
  return `${number(value)} ${/[^aeo]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}

// Figures as text, as the command prints them.

/** Bytes with their unit. */
export function bytes(size) {
  if (size < 1024) return `${number(size)} B`;
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${size.toFixed(1)} ${unit}`;
}

/** A time in nanoseconds: two or three digits. */
export function duration(nanoseconds) {
  for (const [limit, unit] of [[1e3, "ns"], [1e6, "us"], [1e9, "ms"]]) {
    const value = nanoseconds / (limit / 1e3);
    if (value < 999.5) return `${value.toFixed(value >= 9.95 || unit === "ns" ? 0 : 1)} ${unit}`;
  }
  return `${(nanoseconds / 1e9).toFixed(1)} s`;
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

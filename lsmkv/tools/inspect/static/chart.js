// What charts of uPlot share: the page's colors, read again whenever they are drawn.

/** A function that gives the color of a name, as it is in the theme of now. */
export function colors(root) {
  return (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
}

/** What every axis looks like. */
export function axisOf(color) {
  return { stroke: () => color("quiet"), grid: { stroke: () => color("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
}

// What charts of uPlot share: the page's colours, read again whenever they are drawn.

/** A function that gives the colour of a name, as it is in the theme of now. */
export function colours(root) {
  return (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
}

/** What every axis looks like. */
export function axisOf(colour) {
  return { stroke: () => colour("quiet"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
}

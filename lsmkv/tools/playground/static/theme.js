// The theme, before anything is drawn: the system's, or the one that was chosen last.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const KEPT = "lsmkv-theme";

function chosen() {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return ""; // storage is blocked
  }
}

function apply(theme) {
  root.dataset.chosen = theme;
  root.dataset.theme = theme || (system.matches ? "dark" : "light");
  document.dispatchEvent(new Event("lsmkv-theme"));
}

apply(chosen());
system.addEventListener("change", () => apply(chosen()));
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme")?.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, theme === (system.matches ? "dark" : "light") ? "" : theme);
    } catch { /* then it lasts as long as the page */ }
    apply(theme);
  });
});

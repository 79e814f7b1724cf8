// What every page of the playground does first.

/** Scripts run, so that no note about them is needed; the link at the top leads to the content. */
export function begin() {
  document.documentElement.dataset.scripts = "run";
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("view").focus();
  });
}

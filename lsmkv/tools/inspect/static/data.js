// The source of the data: the server, or the answers inside a report.

const held = document.getElementById("lsmkv-answers");
const answers = held ? new Map(JSON.parse(held.textContent).map((one) => [
  question(one.view, one.query), one.answer,
])) : null;

/** Whether this is a report: a file with some answers, without a server. */
export const isReport = answers !== null;
/** Whether a server answers, which sees what happens to the store meanwhile. */
export const isServed = !isReport;
/** What stands beside the name lsmkv. */
export const brand = isReport ? "report" : "inspect";

/** The queries of a view that a report can answer. */
export function answered(view) {
  if (!answers) return [];
  return [...answers.keys()].map((text) => JSON.parse(text)).filter((one) => one[0] === view)
    .map((one) => Object.fromEntries(one[1]));
}

/** Whether there is an answer to this: always from a server, in a report only if it has it. */
export function holds(view, query) {
  return !answers || answers.has(question(view, query));
}

function question(view, query) {
  return JSON.stringify([view, Object.entries(query).map(([k, v]) => [k, String(v)]).sort()]);
}

function path(view, query) {
  const text = new URLSearchParams(query).toString();
  return `api/${view}${text ? `?${text}` : ""}`;
}

let listener = () => {};

/** Call `heard(change)` for each answer about the store, with the change that it is as of. */
export function onAnswer(heard) {
  listener = heard;
}

/** The data of a view.  An `Error` has a message for people; its `gone` is true if the store no longer exists. */
export async function ask(view, query = {}, signal = undefined) {
  if (answers) {
    const answer = answers.get(question(view, query));
    if (answer) return answer;
    throw new Error("This report does not contain that. 'lsmkv inspect DIR' shows everything.");
  }
  return received(() => fetch(path(view, query), { signal }), view !== "state");
}

/** Let the server do something that does not change the store. */
export async function act(action, body = {}) {
  if (answers) throw new Error("A report cannot do this: it has no server.");
  return received(() => fetch(`api/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));
}

async function received(request, isAnswer = false) {
  let response;
  try {
    response = await request();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server does not answer: 'lsmkv inspect' has ended. Start it again, then reload this page."), { silent: true });
  }
  const found = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw Object.assign(new Error(found.error), { gone: response.status === 410 });
  if (isAnswer) listener(Number(response.headers.get("Lsmkv-Change")));
  return found;
}

/** The address of a view's data: its JSON twin.  In a report, of a copy made for the purpose; so too for `data` of the page's own. */
export function twin(view, query = {}, data = null) {
  if (!answers && !data) return path(view, query);
  const answer = data ?? answers.get(question(view, query));
  if (!answer) return null;
  return URL.createObjectURL(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }));
}

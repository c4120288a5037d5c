// The state of the page, kept in the fragment of its address: links, bookmarks and the keys for back
// and forward restore it. A fragment is not sent to the server, so a query may be long.
//
// | key | value | default |
// |---|---|---|
// | view | query, explore or status | query |
// | q | the query | none |
// | show | graph or table | graph |
// | range | a duration of PromQL | 1h |
// | end | the end of the range: RFC 3339 | now |
// | step | a duration | chosen by the range |
// | limit | series at most | 100 |
// | refresh | a duration | never |
// | find | part of the names of metrics in the explorer | none |
// | metric | the metric shown there | none |
// | match | matchers of labels chosen there, separated by commas | none |

const DEFAULTS = {
  view: "query",
  q: "",
  show: "graph",
  range: "1h",
  end: "",
  step: "",
  limit: "100",
  refresh: "",
  find: "",
  metric: "",
  match: "",
};

const listeners = [];

/** Returns the state: every key has a value. Unknown keys of the address are ignored. */
export function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    if (given.has(key)) state[key] = given.get(key);
  }
  return state;
}

/** Returns the address of the current state with changes. */
export function link(changes) {
  const state = { ...read(), ...changes };
  const kept = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
  const text = new URLSearchParams(kept).toString();
  return `#${text}`;
}

/** Goes to the current state with changes. `replace` adds no entry to the history of the browser. */
export function go(changes, { replace = false } = {}) {
  const address = link(changes);
  if (address === (location.hash || "#")) replace = true;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  tell();
}

/** Calls `listener` with the state now, and whenever it changes. */
export function follow(listener) {
  listeners.push(listener);
}

/** Tells all listeners the state. */
export function tell() {
  const state = read();
  for (const listener of listeners) listener(state);
}

addEventListener("popstate", tell);

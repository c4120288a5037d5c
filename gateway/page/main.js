// The start of the page: the views, the keys, and the state of the gateway in the bar.

import { byId } from "./dom.js";
import { json } from "./api.js";
import { ExploreView } from "./explore.js";
import { short } from "./format.js";
import { QueryView } from "./query.js";
import { signedIn } from "./sign_in.js";
import { follow, go, link, read, tell } from "./state.js";
import { StatusView } from "./status.js";

const HEALTH_PAUSE_MS = 5000;

const query = new QueryView();
const views = { query, explore: new ExploreView(), status: new StatusView() };
let current = null;

/** Shows the view of a state. An unknown view is the first. */
function show(state) {
  const name = state.view in views ? state.view : "query";
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.dataset.view !== name;
  for (const anchor of document.querySelectorAll("nav [data-view]")) {
    // A view is left with what it showed, so that it is found again.
    anchor.href = link({ view: anchor.dataset.view });
    if (anchor.dataset.view === name) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  byId("health").href = link({ view: "status" });
  if (current !== name && current !== null) views[current].leave();
  current = name;
  views[name].show(state);
}

/** Keys that work wherever no text is written. */
function key(event) {
  const isWriting = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    query.cancel();
  } else if (!isWriting && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const act = {
      "/": () => byId(current === "explore" ? "find" : "expression").focus(),
      "?": () => byId("keys").showModal(),
      "[": () => current === "query" && query.move(-1),
      "]": () => current === "query" && query.move(1),
      g: () => current === "query" && query.change({ show: "graph" }),
      t: () => current === "query" && query.change({ show: "table" }),
      1: () => go({ view: "query" }),
      2: () => go({ view: "explore" }),
      3: () => go({ view: "status" }),
    }[event.key];
    if (act === undefined || byId("keys").open) return;
    event.preventDefault();
    act();
  }
}

/** Tells in the bar whether the gateway is ready. */
async function health() {
  if (!document.hidden) {
    const shown = byId("health");
    try {
      const status = await json("api/v1/status");
      const isWell = status.ready && !status.writes_refused_for;
      shown.dataset.state = isWell ? "good" : "bad";
      byId("health-text").textContent = isWell
        ? `ready · ${short(status.samples_per_second)} samples/s`
        : status.ready
          ? "writes are refused"
          : "not ready";
      shown.title = `lanes-gateway ${status.version}`;
    } catch {
      shown.dataset.state = "bad";
      byId("health-text").textContent = "no answer";
    }
  }
  setTimeout(health, HEALTH_PAUSE_MS);
}

follow(show);
document.addEventListener("keydown", key);
byId("help").addEventListener("click", () => byId("keys").showModal());
document.querySelector(".skip").addEventListener("click", (event) => {
  // The fragment is the state, so the link itself must not be followed.
  event.preventDefault();
  go({ view: "query" });
  byId("expression").focus();
});
if (signedIn()) {
  tell();
  health();
}
if (read().view === "query" && read().q === "") byId("expression").focus();

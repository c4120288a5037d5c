// The view of queries: what is asked, while it is asked, and its answer as a graph or a table.

import { ask, Failure, isAbort } from "./api.js";
import { byId, fill, make, speak } from "./dom.js";
import { Editor } from "./editor.js";
import { count, counted, dateTime } from "./format.js";
import { Graph } from "./graph.js";
import { remember, remembered } from "./history.js";
import { faultPlace } from "./promql.js";
import { asInput, asState, duration, RANGES, rangeOf, seconds } from "./range.js";
import { statementOf } from "./sql.js";
import { go, read } from "./state.js";
import { tableOf } from "./table.js";

const LIMITS = ["10", "100", "500", "2000"];
const REFRESHES = [
  ["", "off"],
  ["5s", "5s"],
  ["30s", "30s"],
  ["1m", "1m"],
  ["5m", "5m"],
];

export class QueryView {
  constructor() {
    this.editor = new Editor({ run: () => this.submit(), history: remembered });
    this.running = null;
    this.asked = "";
    this.graph = null;
    this.timer = 0;
    this.buildTools();
    this.listen();
  }

  buildTools() {
    fill(
      byId("ranges"),
      RANGES.map((range) => make("button", { type: "button", "data-range": range }, range)),
    );
    fill(
      byId("limit"),
      LIMITS.map((limit) => make("option", { value: limit }, limit)),
    );
    fill(
      byId("refresh"),
      REFRESHES.map(([value, text]) => make("option", { value }, text)),
    );
  }

  listen() {
    byId("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    byId("cancel").addEventListener("click", () => this.cancel());
    byId("tidy").addEventListener("click", () => this.tidy());
    byId("sql").addEventListener("click", () => this.showStatement());
    for (const button of document.querySelectorAll("[data-show]")) {
      button.addEventListener("click", () => this.change({ show: button.dataset.show }));
    }
    for (const button of document.querySelectorAll("[data-range]")) {
      button.addEventListener("click", () => this.change({ range: button.dataset.range }));
    }
    for (const key of ["range", "step", "limit", "refresh"]) {
      byId(key).addEventListener("change", (event) => this.change({ [key]: event.target.value.trim() }));
    }
    byId("end").addEventListener("change", ({ target }) => {
      const time = Date.parse(target.value) / 1000;
      this.change({ end: Number.isNaN(time) ? "" : asState(time) });
    });
    byId("now").addEventListener("click", () => this.change({ end: "" }));
    byId("earlier").addEventListener("click", () => this.move(-1));
    byId("later").addEventListener("click", () => this.move(1));
  }

  /** Changes the state, with what stands in the editor, and asks anew. */
  change(changes) {
    this.asked = "";
    go({ q: this.editor.text.trim(), ...changes });
  }

  submit() {
    this.change({});
  }

  /** Moves the range by half of it. */
  move(direction) {
    const state = read();
    const { end, length, fault } = rangeOf(state, Date.now() / 1000);
    if (fault) return;
    const moved = end + (direction * length) / 2;
    this.change({ end: moved >= Date.now() / 1000 ? "" : asState(moved) });
  }

  /** Cancels what runs, which is then told. */
  cancel() {
    this.running?.abort();
  }

  /** Cancels what runs, whose end no longer matters. */
  abandon() {
    this.cancel();
    this.running = null;
    this.busy(false);
  }

  async tidy() {
    try {
      const { data } = await ask("api/v1/format_query", { query: this.editor.text }, { post: true });
      this.editor.text = data;
    } catch (error) {
      this.fail(error);
    }
  }

  /** Shows the query as a statement of SQL, and copies it where the browser lets the page do so. */
  async showStatement() {
    const state = { ...read(), q: this.editor.text };
    const range = rangeOf(state, Date.now() / 1000);
    if (range.fault) return this.fail(new Failure("bad_data", range.fault));
    byId("statement-text").value = statementOf(state, range);
    byId("statement-note").textContent = "";
    byId("statement").showModal();
    byId("statement-text").select();
    try {
      await navigator.clipboard.writeText(byId("statement-text").value);
      byId("statement-note").textContent = "Copied.";
    } catch {
      // Browsers copy only for pages of HTTPS or of this machine.
      byId("statement-note").textContent = "Copy the selected text.";
    }
  }

  /** Shows a state, and asks the query if the state is another than the one that was asked. */
  show(state) {
    clearTimeout(this.timer);
    this.editor.text = state.q;
    for (const button of document.querySelectorAll("[data-show]")) {
      button.setAttribute("aria-pressed", String(button.dataset.show === state.show));
    }
    for (const button of document.querySelectorAll("[data-range]")) {
      button.setAttribute("aria-pressed", String(button.dataset.range === state.range));
    }
    for (const key of ["range", "step", "limit", "refresh"]) byId(key).value = state[key];
    const { end, step, fault } = rangeOf(state, Date.now() / 1000);
    byId("end").value = state.end === "" || fault ? "" : asInput(end);
    byId("step").placeholder = fault ? "auto" : duration(step);
    byId("now").disabled = state.end === "";
    document.title = state.q === "" ? "pg_lanes" : `${state.q} · pg_lanes`;
    const { q, show, range, end: until, step: by, limit } = state;
    const asked = JSON.stringify([q, show, range, until, by, limit]);
    if (asked !== this.asked) this.evaluate(state, asked);
    this.refreshLater(state);
  }

  /** Asks again after a while, unless the range has a fixed end. */
  refreshLater(state) {
    const pause = seconds(state.refresh);
    if (pause === null || state.end !== "") return;
    this.timer = setTimeout(() => {
      const isBusy = this.running !== null || document.hidden;
      if (!isBusy) this.evaluate(read(), this.asked);
      this.refreshLater(read());
    }, pause * 1000);
  }

  /** Ends timers and requests when another view is shown. */
  leave() {
    clearTimeout(this.timer);
    this.abandon();
    this.editor.close();
    this.asked = "";
  }

  async evaluate(state, asked) {
    this.abandon();
    this.asked = asked;
    if (state.q.trim() === "") return this.invite();
    const range = rangeOf(state, Date.now() / 1000);
    if (range.fault) return this.fail(new Failure("bad_data", range.fault));
    const running = new AbortController();
    this.running = running;
    this.busy(true);
    const started = performance.now();
    try {
      const answer = await this.request(state, range, running.signal);
      if (this.running !== running) return;
      remember(state.q);
      this.editor.mark(null);
      this.display(state, range, answer, performance.now() - started);
    } catch (error) {
      // A newer query shows its own answer.
      if (this.running === running) this.fail(error);
    } finally {
      if (this.running === running) {
        this.running = null;
        this.busy(false);
      }
    }
  }

  request(state, range, signal) {
    const parameters = { query: state.q, limit: state.limit, stats: "all" };
    if (state.show === "table") return ask("api/v1/query", { ...parameters, time: range.end }, { signal, post: true });
    const { start, end, step } = range;
    return ask("api/v1/query_range", { ...parameters, start, end, step }, { signal, post: true });
  }

  busy(isBusy) {
    byId("run").hidden = isBusy;
    byId("cancel").hidden = !isBusy;
    byId("progress").hidden = !isBusy;
    byId("answer").setAttribute("aria-busy", String(isBusy));
  }

  display(state, range, { data, warnings, infos }, ms) {
    const isGraph = state.show === "graph";
    const notes = [
      ...warnings.map((text) => note("warning", worded(text, state.limit))),
      ...infos.map((text) => note("info", text)),
    ];
    const summary = make("p", { className: "note summary" }, summaryOf(data, range, isGraph, ms));
    if (isGraph && data.result.length > 0) {
      const shown = this.graph?.root.isConnected ? this.graph : this.newGraph();
      fill(byId("answer"), summary, notes, shown.root);
      shown.show(data.result, range);
    } else {
      this.graph?.end();
      this.graph = null;
      fill(byId("answer"), summary, notes, tableOf(data));
    }
    speak(summary.textContent);
  }

  newGraph() {
    this.graph?.end();
    this.graph = new Graph({ selected: (start, end) => this.zoom(start, end) });
    return this.graph;
  }

  zoom(start, end) {
    const length = Math.max(1, Math.round(end - start));
    this.change({ range: duration(length), end: asState(end) });
  }

  fail(error) {
    if (isAbort(error)) {
      fill(byId("answer"), make("p", { className: "empty" }, "The query was cancelled."));
      return speak("The query was cancelled.");
    }
    if (!(error instanceof Failure)) throw error;
    const place = faultPlace(this.editor.text, error.message);
    this.editor.mark(place);
    fill(
      byId("answer"),
      make(
        "div",
        { className: "fault", role: "alert" },
        make("b", {}, error.kind),
        " ",
        error.message,
        place === null ? null : make("pre", {}, pointer(this.editor.text, place)),
      ),
    );
  }

  invite() {
    const examples = [
      ["targets that are up", "up"],
      ["samples stored a second", "rate(lanes_gateway_samples_stored_total[1m])"],
      ["requests by status", "sum by (status) (rate(lanes_gateway_http_requests_total[5m]))"],
      [
        "99 of 100 writes are faster than",
        "histogram_quantile(0.99, sum by (le) (rate(lanes_gateway_ack_duration_seconds_bucket[5m])))",
      ],
    ];
    const rows = examples.map(([what, q]) =>
      make(
        "li",
        {},
        make(
          "button",
          { type: "button", className: "example", click: () => this.change({ q, show: "graph" }) },
          make("code", {}, q),
          make("span", { className: "note" }, what),
        ),
      ),
    );
    fill(
      byId("answer"),
      make(
        "div",
        { className: "invite" },
        make("h2", {}, "Ask in PromQL"),
        make("p", { className: "note" }, "The gateway stores its own metrics, so these have answers:"),
        make("ul", {}, rows),
      ),
    );
    this.editor.mark(null);
  }
}

const note = (kind, text) => make("p", { className: `message ${kind}` }, make("b", {}, kind), " ", text);

/** A warning of the API; the one about the limit with the remedy. */
function worded(text, limit) {
  if (text !== "results truncated due to limit") return text;
  const more = `more than ${counted(Number(limit), "series", "series")}`;
  return `${text}: ${more}. Aggregate, select fewer, or raise “series” above.`;
}

function summaryOf({ resultType, result, stats }, { start, end, step }, isGraph, ms) {
  const parts = [];
  if (Array.isArray(result) && (resultType === "vector" || resultType === "matrix"))
    parts.push(counted(result.length, "series", "series"));
  if (isGraph)
    parts.push(
      counted(
        result.reduce((sum, { values }) => sum + values.length, 0),
        "point",
      ),
      `step ${duration(step)}`,
      `${dateTime(start)} – ${dateTime(end)}`,
    );
  else parts.push(`at ${dateTime(end)}`);
  const read = stats?.samples?.totalQueryableSamples;
  if (read !== undefined) parts.push(`${count(read)} samples read`);
  parts.push(`${count(ms)} ms`);
  return parts.join(" · ");
}

/** The line of a fault, with a mark below its place. */
function pointer(text, place) {
  const start = text.lastIndexOf("\n", place - 1) + 1;
  const end = text.indexOf("\n", place);
  const line = text.slice(start, end < 0 ? undefined : end);
  return `${line}\n${" ".repeat(place - start)}^`;
}

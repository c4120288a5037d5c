// The view of the status: what the gateway takes in, what the database holds, what is refused.

import { ask, json, text } from "./api.js";
import { byId, fill, make } from "./dom.js";
import { bytes, count, counted, dateTime, short } from "./format.js";
import { Graph } from "./graph.js";

const PAUSE_MS = 2000;
/** The storage is read from all tables, so it is asked for less often. */
const STORAGE_PAUSE_MS = 15000;
/** The rates that the small graph remembers. */
const RATES_MAX = 300;

export class StatusView {
  constructor() {
    this.timer = 0;
    this.turn = 0;
    this.rates = [];
    this.graph = null;
    this.storage = null;
  }

  show() {
    document.title = "Status · pg_lanes";
    clearTimeout(this.timer);
    this.graph ??= new Graph({ selected: null });
    this.graph.root.classList.add("small");
    this.turn += 1;
    this.tick(this.turn);
  }

  leave() {
    this.turn += 1;
    clearTimeout(this.timer);
    this.graph?.end();
    this.graph = null;
    this.storage = null;
  }

  /** Loads again and again, until the view is left or shown anew. */
  async tick(turn) {
    if (!document.hidden) await this.load(turn);
    if (turn === this.turn) this.timer = setTimeout(() => this.tick(turn), PAUSE_MS);
  }

  async load(turn) {
    try {
      const [status, ready, metrics] = await Promise.all([json("api/v1/status"), text("-/ready"), text("metrics")]);
      await this.loadStorage();
      if (turn !== this.turn) return;
      this.remember(status);
      fill(
        byId("status"),
        states(status, ready),
        this.rateCard(status),
        cards(status, refusals(metrics.text)),
        storageCard(this.storage),
      );
      this.drawRates();
    } catch (error) {
      if (turn === this.turn) fill(byId("status"), make("p", { className: "fault", role: "alert" }, error.message));
    }
  }

  async loadStorage() {
    const now = performance.now();
    if (this.storage !== null && now - this.storage.at < STORAGE_PAUSE_MS) return;
    try {
      const { data } = await ask("api/v1/status/storage");
      this.storage = { at: now, data };
    } catch (error) {
      this.storage = { at: now, fault: error.message };
    }
  }

  remember({ samples_per_second: rate }) {
    this.rates.push([Date.now() / 1000, String(rate)]);
    if (this.rates.length > RATES_MAX) this.rates.shift();
  }

  rateCard(status) {
    return make(
      "div",
      { className: "card rate" },
      make(
        "div",
        { className: "figure" },
        make("b", {}, short(status.samples_per_second)),
        make("span", {}, "samples stored a second"),
      ),
      this.graph.root,
    );
  }

  drawRates() {
    const end = this.rates.at(-1)[0];
    const start = Math.min(this.rates[0][0], end - 60);
    this.graph.show([{ metric: { __name__: "samples_per_second" }, values: this.rates }], {
      start,
      end,
      step: (PAUSE_MS * 4) / 1000,
      fromZero: true,
    });
  }
}

/** Readiness, and each condition that an operator should know. */
function states(status, ready) {
  const lines = ready.text.trim().split("\n");
  const rows = lines.map((line, index) => {
    const isBad = ready.status >= 400 || line.includes("refused") || line.includes("missing");
    return make(
      "li",
      { className: isBad ? "bad" : "good" },
      make("span", { className: "dot" }),
      index === 0 && !isBad ? "The gateway is ready: PostgreSQL accepts batches." : line,
    );
  });
  const reason = status.writes_refused_for;
  return make(
    "ul",
    { className: "states card" },
    rows,
    reason
      ? make("li", { className: "bad" }, make("span", { className: "dot" }), `Writes are refused: ${reason}`)
      : null,
  );
}

function tile(value, name, isBad = false) {
  return make("div", { className: isBad ? "tile bad" : "tile" }, make("b", {}, value), make("span", {}, name));
}

function cards(status, refused) {
  return make(
    "div",
    {},
    make("h2", {}, "Ingest"),
    make(
      "div",
      { className: "tiles" },
      tile(count(status.rows), "samples stored since the start"),
      tile(count(status.events), "events stored"),
      tile(count(status.requests_stored), "requests stored"),
      tile(count(status.requests_repeated), "requests repeated"),
      tile(bytes(status.pending_bytes), "pending"),
    ),
    make("h2", {}, "Series and object storage"),
    make(
      "div",
      { className: "tiles" },
      tile(count(status.series), "series"),
      tile(count(status.series_cached), "series in the gateway's cache"),
      tile(status.objects, "object storage"),
      tile(bytes(status.objects_backlog_bytes), "waiting for object storage"),
    ),
    make("h2", {}, "Refused since the start"),
    refusedCard(refused),
  );
}

/** What was refused: `{what, status, number}` from the gateway's metrics. */
function refusals(metrics) {
  const found = [];
  const queries = new Set();
  for (const [, labels, number] of metrics.matchAll(
    /^lanes_gateway_(?:http_requests|queries)_total\{([^}]*(?:\{[^}]*\}[^}]*)?)\} (\d+)$/gm,
  )) {
    const value = (name) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1];
    const [route, status, outcome] = [value("route"), value("status"), value("outcome")];
    if (outcome !== undefined) queries.add(route);
    const isRefused = status === undefined ? outcome !== "success" : Number(status) >= 400;
    if (isRefused && Number(number) > 0) found.push({ route, why: status ?? outcome, number: Number(number) });
  }
  // Queries are counted with their outcome, which says more than the status.
  return found.filter(({ route, why }) => !queries.has(route) || Number.isNaN(Number(why)));
}

/** What the statuses of HTTP and the outcomes of queries mean. */
const MEANINGS = {
  400: "the request was wrong",
  403: "not allowed",
  404: "no such table or route",
  405: "another method is needed",
  415: "an encoding or media type that is not supported",
  422: "the query cannot be evaluated, or the events contradict the table",
  429: "the user writes more samples a second than its limit allows",
  503: "not now: overload, or PostgreSQL does not accept it; senders repeat it",
  bad_data: "the query or a parameter was wrong",
  execution: "the query could not be evaluated",
  forbidden: "the role may not read this",
  timeout: "the query took too long",
  canceled: "the statement was cancelled",
  unavailable: "all sessions in use, or PostgreSQL away",
  client_gone: "the client went away",
};

function refusedCard(refused) {
  if (refused.length === 0) return make("p", { className: "card empty" }, "Nothing was refused.");
  const rows = refused.map(({ route, why, number }) =>
    make(
      "tr",
      {},
      make("td", {}, make("code", {}, route)),
      make("td", {}, why),
      make("td", {}, MEANINGS[why] ?? ""),
      make("td", { className: "value" }, count(number)),
    ),
  );
  return make(
    "div",
    { className: "card scroll" },
    make("table", {}, head("route", "status or outcome", "meaning", "#requests"), make("tbody", {}, rows)),
  );
}

/** The arena, and the segments of each table by state. */
function storageCard({ data, fault }) {
  const title = make("h2", {}, "Storage");
  if (fault) return make("div", {}, title, make("p", { className: "fault" }, fault));
  const { arena, segments } = data;
  const rows = segments.map((row) =>
    make(
      "tr",
      {},
      make("td", {}, make("code", {}, row.relation)),
      make("td", {}, make("span", { className: `state ${row.state}` }, row.state)),
      number(count(row.segments)),
      number(count(row.rows)),
      number(bytes(row.bytes_encoded)),
      number(row.rows > 0 ? `${(row.bytes_encoded / row.rows).toFixed(2)} B` : ""),
      make("td", {}, row.max_time ? `${dateTime(row.min_time)} – ${dateTime(row.max_time)}` : ""),
    ),
  );
  const table = make(
    "table",
    {},
    head("table", "state", "#segments", "#rows", "#bytes", "#a row", "times"),
    make("tbody", {}, rows),
  );
  return make(
    "div",
    {},
    title,
    arenaBar(arena),
    rows.length > 0
      ? make("div", { className: "card scroll" }, table)
      : make("p", { className: "card empty" }, "No table holds a segment yet."),
  );
}

function arenaBar(arena) {
  if (arena === null)
    return make("p", { className: "card empty" }, "The server did not preload the library, so it has no arena.");
  const share = arena.bytes_total > 0 ? arena.bytes_used / arena.bytes_total : 0;
  const used = make("div", { className: "used" });
  used.style.width = `${Math.max(0.5, share * 100)}%`;
  const left = arena.segment_evictions + arena.relation_evictions;
  return make(
    "div",
    { className: "card arena" },
    make(
      "p",
      {},
      make("b", {}, "Arena "),
      `${bytes(arena.bytes_used)} of ${bytes(arena.bytes_total)} used, `,
      `${counted(arena.segments, "segment")} of ${counted(arena.relations, "table")} in memory.`,
    ),
    make(
      "div",
      {
        className: "meter",
        role: "meter",
        "aria-label": "Use of the arena",
        "aria-valuemin": "0",
        "aria-valuemax": "100",
        "aria-valuenow": String(Math.round(share * 100)),
      },
      used,
    ),
    make(
      "p",
      { className: "note" },
      `${counted(left, "eviction")} of segments and tables, ${counted(arena.refusals, "refusal")} for want of room.`,
    ),
  );
}

const number = (value) => make("td", { className: "value" }, value);

/** The head of a table. Names with a mark `#` are those of columns of numbers. */
function head(...names) {
  const cells = names.map((name) =>
    make("th", { scope: "col", className: name.startsWith("#") ? "value" : "" }, name.replace("#", "")),
  );
  return make("thead", {}, make("tr", {}, cells));
}

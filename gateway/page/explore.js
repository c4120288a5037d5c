// The explorer: all metrics with the number of their series, and the labels of one metric.

import { ask, isAbort, quoted, selector } from "./api.js";
import { byId, fill, make, whenQuiet } from "./dom.js";
import { count, counted, dateTime } from "./format.js";
import { Graph } from "./graph.js";
import { rangeOf } from "./range.js";
import { go, link, read } from "./state.js";

/** The metrics that are asked for, which the gateway has as its limit, and those that are drawn. */
const METRICS_MAX = 10000;
const DRAWN_MAX = 500;
/** The series of a metric whose labels are counted, and the values of a label that are drawn. */
const SERIES_MAX = 2000;
const VALUES_MAX = 30;
/** The lines of the small graph. */
const LINES_MAX = 12;

export class ExploreView {
  constructor() {
    this.index = null;
    this.shown = "";
    this.graph = null;
    this.asking = null;
    const find = whenQuiet(120, (text) => go({ find: text }, { replace: true }));
    byId("find").addEventListener("input", (event) => find(event.target.value.trim()));
  }

  show(state) {
    document.title = state.metric === "" ? "Explorer · pg_lanes" : `${state.metric} · pg_lanes`;
    if (document.activeElement !== byId("find")) byId("find").value = state.find;
    if (this.index === null) this.load();
    else this.drawList(state);
    const key = JSON.stringify([state.metric, state.match]);
    if (key !== this.shown) this.showMetric(state, key);
  }

  leave() {
    this.asking?.abort();
    this.index = null;
    this.shown = "";
  }

  async load() {
    this.index = { metrics: [], isLoading: true };
    byId("found").textContent = "Loading …";
    try {
      const { data } = await ask("api/v1/status/tsdb", { limit: METRICS_MAX });
      this.index = {
        metrics: data.seriesCountByMetricName,
        labels: data.labelValueCountByLabelName,
        pairs: data.seriesCountByLabelValuePair,
        head: data.headStats,
      };
      this.drawTotals();
      this.drawList(read());
      if (read().metric === "") this.drawCardinality();
    } catch (error) {
      this.index = null;
      byId("found").textContent = "";
      fill(byId("metrics"), fault(error));
    }
  }

  drawTotals() {
    const { head, metrics, labels } = this.index;
    const plus = metrics.length >= METRICS_MAX ? "+" : "";
    const tiles = [
      ["series", count(head.numSeries)],
      ["metrics", count(metrics.length) + plus],
      ["label names", count(labels.length)],
      ["label pairs", count(head.numLabelPairs)],
      ["first sample", head.minTime ? dateTime(head.minTime / 1000) : "none"],
      ["latest sample", head.maxTime ? dateTime(head.maxTime / 1000) : "none"],
    ];
    fill(
      byId("totals"),
      tiles.map(([name, value]) =>
        make(
          "div",
          { className: "tile" },
          make("b", { className: value.length > 12 ? "long" : "" }, value),
          make("span", {}, name),
        ),
      ),
    );
  }

  drawList({ find, metric }) {
    if (this.index.isLoading) return;
    const wanted = find.toLowerCase();
    const found = this.index.metrics.filter(({ name }) => name.toLowerCase().includes(wanted));
    const most = Math.max(1, ...found.map(({ value }) => value));
    const rows = found.slice(0, DRAWN_MAX).map(({ name, value }) => {
      const bar = make("span", { className: "bar-of" });
      bar.style.width = `${(value / most) * 100}%`;
      const isShown = name === metric;
      return make(
        "li",
        {},
        make(
          "a",
          { href: link({ metric: name, match: "" }), ...(isShown ? { "aria-current": "true" } : {}) },
          bar,
          make("span", { className: "name" }, name || "(no name)"),
          make("span", { className: "number" }, count(value)),
        ),
      );
    });
    fill(byId("metrics"), rows);
    const more = found.length > rows.length ? `; the ${DRAWN_MAX} with the most series are listed` : "";
    const cut =
      this.index.metrics.length >= METRICS_MAX
        ? ` The database has more than ${count(METRICS_MAX)} metrics: those with the most series are searched.`
        : "";
    byId("found").textContent = `${counted(found.length, "metric")}, number of series${more}.${cut}`;
  }

  /** What has the most series, shown while no metric is chosen. */
  drawCardinality() {
    const { labels, pairs } = this.index;
    const block = (title, note, rows) =>
      make(
        "div",
        {},
        make("h3", {}, title),
        make("p", { className: "note" }, note),
        make(
          "ul",
          { className: "values" },
          rows
            .slice(0, VALUES_MAX)
            .map(({ name, value }) =>
              make(
                "li",
                {},
                make("span", { className: "name" }, name),
                make("span", { className: "number" }, count(value)),
              ),
            ),
        ),
      );
    fill(
      byId("metric"),
      make("h2", {}, "Cardinality"),
      make("p", { className: "note" }, "Choose a metric to see its labels."),
      make(
        "div",
        { className: "halves" },
        block(
          "Labels",
          "with the most values",
          [...labels].sort((a, b) => b.value - a.value),
        ),
        block(
          "Pairs of label and value",
          "in the most series",
          pairs.filter(({ name }) => !name.startsWith("__name__=")),
        ),
      ),
    );
  }

  async showMetric(state, key) {
    this.shown = key;
    this.asking?.abort();
    this.graph?.end();
    this.graph = null;
    if (state.metric === "") {
      if (this.index?.head) this.drawCardinality();
      else fill(byId("metric"));
      return;
    }
    const asking = new AbortController();
    this.asking = asking;
    const matchers = matchersOf(state);
    fill(byId("metric"), this.head(state, matchers), make("p", { className: "note" }, "Loading …"));
    try {
      const match = selector(state.metric, matchers);
      const { data, warnings } = await ask(
        "api/v1/series",
        { "match[]": match, limit: SERIES_MAX },
        { signal: asking.signal, post: true },
      );
      this.graph = new Graph({ selected: null });
      this.graph.root.classList.add("small");
      fill(byId("metric"), this.head(state, matchers), this.graph.root, this.labels(state, data, warnings.length > 0));
      await this.drawGraph(state, matchers, asking.signal);
    } catch (error) {
      if (!isAbort(error)) fill(byId("metric"), this.head(state, matchers), fault(error));
    }
  }

  head(state, matchers) {
    const chips = matchers.map((matcher) => {
      const rest = matchers.filter((other) => other !== matcher);
      return make(
        "a",
        { className: "chip", href: link({ match: rest.join(",") }), title: "Remove this matcher" },
        matcher,
        " ×",
      );
    });
    const q = queryOf(state.metric, matchers);
    const open = (show) => link({ view: "query", q, show, metric: "", match: "", find: "" });
    return make(
      "div",
      { className: "head" },
      make("h2", {}, state.metric || "(no name)"),
      make("div", { className: "chips" }, chips),
      make(
        "div",
        { className: "ways" },
        make("a", { className: "button main", href: open("graph") }, "Graph"),
        make("a", { className: "button", href: open("table") }, "Table"),
        make("code", {}, q),
      ),
    );
  }

  async drawGraph(state, matchers, signal) {
    const range = rangeOf({ range: "1h", end: "", step: "" }, Date.now() / 1000);
    const { start, end, step } = range;
    const query = queryOf(state.metric, matchers);
    const { data, warnings } = await ask(
      "api/v1/query_range",
      { query, start, end, step, limit: LINES_MAX },
      { signal, post: true },
    );
    if (this.graph === null) return;
    if (data.result.length === 0) {
      fill(this.graph.root, make("p", { className: "note" }, "No samples within the last hour."));
      return;
    }
    this.graph.show(data.result, range);
    const cut = warnings.length > 0 ? `the first ${LINES_MAX} series` : counted(data.result.length, "series", "series");
    this.graph.root.append(make("p", { className: "note" }, `The last hour, ${cut}.`));
  }

  /** The labels of some series, with the number of their values. */
  labels(state, series, isCut) {
    const found = new Map();
    for (const labels of series) {
      for (const [label, value] of Object.entries(labels)) {
        if (label === "__name__") continue;
        if (!found.has(label)) found.set(label, new Map());
        const values = found.get(label);
        values.set(value, (values.get(value) ?? 0) + 1);
      }
    }
    const labels = [...found].sort(([, a], [, b]) => b.size - a.size);
    const note = isCut
      ? `More than ${counted(SERIES_MAX, "series", "series")}: the numbers below count the first ${count(SERIES_MAX)}.`
      : `${counted(series.length, "series", "series")}, ${counted(labels.length, "label")}.`;
    return make(
      "div",
      {},
      make("p", { className: isCut ? "message warning" : "note" }, note),
      labels.map(([label, values]) => this.label(state, label, values)),
    );
  }

  label(state, label, values) {
    // A name that is no word is written in quotes.
    const name = /^[A-Za-z_][A-Za-z0-9_]*$/.test(label) ? label : quoted(label);
    const sorted = [...values].sort(([, a], [, b]) => b - a);
    const items = sorted.slice(0, VALUES_MAX).map(([value, number]) => {
      const matcher = `${name}=${quoted(value)}`;
      const others = matchersOf(state).filter((other) => !other.startsWith(`${name}=`));
      return make(
        "li",
        {},
        make(
          "a",
          { href: link({ match: [...others, matcher].join(",") }), title: `Only series with ${matcher}` },
          make("span", { className: "name" }, value),
          make("span", { className: "number" }, count(number)),
        ),
      );
    });
    const rest = values.size - items.length;
    return make(
      "details",
      { open: values.size <= 8 },
      make(
        "summary",
        {},
        make("code", {}, label),
        " ",
        make("span", { className: "note" }, counted(values.size, "value")),
      ),
      make("ul", { className: "values" }, items),
      rest > 0 ? make("p", { className: "note" }, `and ${counted(rest, "further value")}`) : null,
    );
  }
}

/** The matchers of a state: `label="value"`, separated by commas outside of strings. */
function matchersOf({ match }) {
  return match.match(/(?:"(?:[^"\\]|\\.)*"|[^,"=]+)="(?:[^"\\]|\\.)*"/g) ?? [];
}

/** A query for a metric: a rate if its name is that of a counter. */
function queryOf(metric, matchers) {
  const isWord = /^[A-Za-z_:][A-Za-z0-9_:]*$/.test(metric);
  const labels = matchers.length > 0 ? `{${matchers.join(",")}}` : "";
  const series = isWord ? `${metric}${labels}` : selector(metric, matchers);
  return /_(total|count|sum|bucket)$/.test(metric) ? `rate(${series}[5m])` : series;
}

const fault = (error) =>
  make("p", { className: "fault", role: "alert" }, make("b", {}, error.kind ?? "error"), " ", error.message);

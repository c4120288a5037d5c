// Answers as tables: a row for each series, a column for each label that differs.

import { fill, make } from "./dom.js";
import { common, counted, dateTime, exact, labelSet } from "./format.js";
import { number } from "./graph.js";

/** With more labels than this, a series is one column. */
const LABELS_MAX = 8;
/** The rows that are drawn, and the samples of a range that are. */
const ROWS_MAX = 1000;
const SAMPLES_MAX = 12;

/** Returns the table of an answer of `query`. */
export function tableOf({ resultType, result }) {
  if (resultType === "scalar" || resultType === "string") {
    const [time, value] = result;
    return make(
      "div",
      { className: "single" },
      make("b", {}, resultType === "scalar" ? exact(number(value)) : value),
      make("span", { className: "note" }, `${resultType} at ${dateTime(time)}`),
    );
  }
  if (result.length === 0) return make("p", { className: "empty" }, "No series has a value here.");
  const shared = common(result.map(({ metric }) => metric));
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))]
    .filter((name) => !(name in shared))
    .sort();
  const isWide = labels.length > LABELS_MAX || labels.length === 0;
  const columns = isWide
    ? [{ name: "series", text: ({ metric }) => labelSet(metric) }]
    : labels.map((name) => ({ name: name === "__name__" ? "metric" : name, text: ({ metric }) => metric[name] ?? "" }));
  const note =
    isWide || Object.keys(shared).length === 0
      ? null
      : make("p", { className: "note shared" }, `All series: ${labelSet(shared)}`);
  return make("div", {}, note, make("div", { className: "scroll" }, sortable(result, columns)));
}

/** A table whose headers sort it. */
function sortable(rows, columns) {
  const body = make("tbody");
  const order = { column: null, isDown: false };
  const headers = [...columns.map(({ name }, index) => header(name, index)), header("value", -1)];
  const draw = () => {
    const sorted = order.column === null ? rows : [...rows].sort((a, b) => compare(a, b, order, columns));
    fill(
      body,
      sorted.slice(0, ROWS_MAX).map((row) => rowOf(row, columns)),
    );
    for (const each of headers) {
      const isSorted = Number(each.dataset.column) === order.column;
      each.setAttribute("aria-sort", !isSorted ? "none" : order.isDown ? "descending" : "ascending");
    }
  };
  for (const each of headers) {
    each.firstChild.addEventListener("click", () => {
      const column = Number(each.dataset.column);
      // The greatest values are looked for more often than the least.
      order.isDown = order.column === column ? !order.isDown : column === -1;
      order.column = column;
      draw();
    });
  }
  draw();
  const cut =
    rows.length > ROWS_MAX ? make("caption", {}, `The first ${counted(ROWS_MAX, "row")} of ${rows.length}.`) : null;
  return make("table", {}, cut, make("thead", {}, make("tr", {}, headers)), body);
}

function header(name, column) {
  return make(
    "th",
    { scope: "col", "data-column": column, className: column === -1 ? "value" : "" },
    make("button", { type: "button" }, name),
  );
}

function compare(a, b, { column, isDown }, columns) {
  const sign = isDown ? -1 : 1;
  if (column === -1) return sign * (latest(a) - latest(b));
  const [left, right] = [a, b].map(columns[column].text);
  return sign * left.localeCompare(right, "en", { numeric: true });
}

const latest = ({ value, values }) => number((value ?? values.at(-1))[1]);

function rowOf(row, columns) {
  const cells = columns.map(({ text }) => make("td", {}, text(row)));
  return make(
    "tr",
    {},
    cells,
    make("td", { className: "value" }, row.value ? exact(number(row.value[1])) : samples(row.values)),
  );
}

/** The latest samples of a range, each with its time. */
function samples(values) {
  const lines = values
    .slice(-SAMPLES_MAX)
    .map(([time, value]) =>
      make("div", {}, `${exact(number(value))} `, make("span", { className: "note" }, `@ ${dateTime(time)}`)),
    );
  const rest = values.length - lines.length;
  return make(
    "div",
    {},
    rest > 0 ? make("div", { className: "note" }, `${counted(rest, "earlier sample")} not shown`) : null,
    lines,
  );
}

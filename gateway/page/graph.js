// A chart with its tooltip and its legend, made of the matrix that the API returns.

import { Chart, nearestIndex } from "./chart.js";
import { fill, make, speak } from "./dom.js";
import { common, dateTime, exact, labelSet, short } from "./format.js";

/** The colours of the theme: `--series-0` and so on. Further series begin anew. */
const COLOURS = 12;
/** The lines of a tooltip. */
const TOLD_MAX = 10;

/** Returns the series of a matrix as the chart takes them. */
export function seriesOf(matrix) {
  const left = new Set(Object.keys(common(matrix.map(({ metric }) => metric))));
  return matrix.map(({ metric, values }, index) => ({
    name: labelSet(metric, left),
    full: labelSet(metric),
    colour: `--series-${index % COLOURS}`,
    times: values.map(([time]) => time),
    values: values.map(([, value]) => number(value)),
    isHidden: false,
  }));
}

/** A value of the API, which writes numbers as texts. */
export function number(text) {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}

export class Graph {
  /** `selected` is called with the start and the end of a range that was dragged. */
  constructor({ selected }) {
    this.tip = make("div", { className: "tip", hidden: true });
    this.host = make("div", {
      className: "chart",
      tabIndex: 0,
      role: "application",
      "aria-label": "Graph. The arrows read it point by point and series by series.",
    });
    this.legend = make("ul", { className: "legend", "aria-label": "Series" });
    this.note = make("p", { className: "note shared" });
    this.root = make("div", { className: "graph" }, this.host, this.note, this.legend);
    this.chart = new Chart(this.host, { moved: (point) => this.tell(point), selected });
    this.host.append(this.tip);
    this.host.addEventListener("keyup", (event) => {
      if (event.key.startsWith("Arrow") && this.chart.chosen) speak(this.chart.words());
    });
  }

  end() {
    this.chart.end();
  }

  /** Shows a matrix, asked for with a range. Series that were hidden before stay hidden. */
  show(matrix, { start, end, step, fromZero = false }) {
    const hidden = new Set(this.series?.filter(({ isHidden }) => isHidden).map(({ full }) => full));
    this.series = seriesOf(matrix);
    for (const series of this.series) series.isHidden = hidden.has(series.full);
    if (this.series.every(({ isHidden }) => isHidden)) this.series.forEach((one) => (one.isHidden = false));
    const shared = common(matrix.map(({ metric }) => metric));
    this.note.textContent = Object.keys(shared).length > 0 ? `All series: ${labelSet(shared)}` : "";
    this.drawLegend();
    this.chart.show({ start, end, step, fromZero, series: this.series });
  }

  drawLegend() {
    const rows = this.series.map((series) => {
      const last = series.values.at(-1);
      const swatch = make("span", { className: "swatch" });
      swatch.style.background = `var(${series.colour})`;
      const button = make(
        "button",
        {
          type: "button",
          "aria-pressed": String(!series.isHidden),
          title: `${series.full}\nClick: this series alone. Ctrl and click: hide or show it.`,
          click: (event) => this.toggle(series, event.ctrlKey || event.metaKey || event.shiftKey),
          pointerenter: () => this.chart.emphasise(series),
          pointerleave: () => this.chart.emphasise(null),
        },
        swatch,
        make("span", { className: "name" }, series.name),
        make("span", { className: "last" }, last === undefined ? "" : short(last)),
      );
      return make("li", {}, button);
    });
    fill(this.legend, rows);
  }

  /** Shows one series alone, or all if it was alone; or turns one series off or on. */
  toggle(series, isOne) {
    const isAlone = this.series.every((other) => other.isHidden === (other !== series));
    if (isOne) series.isHidden = !series.isHidden;
    else for (const other of this.series) other.isHidden = !isAlone && other !== series;
    this.series.forEach(({ isHidden }, index) => {
      this.legend.children[index].firstChild.setAttribute("aria-pressed", String(!isHidden));
    });
    this.chart.emphasise(null);
    this.chart.draw();
  }

  /** Shows the values at the time of a point, the greatest first. */
  tell(point) {
    this.tip.hidden = point === null;
    if (point === null) return;
    const time = point.series.times[point.index];
    const told = this.series
      .filter(({ isHidden }) => !isHidden)
      .flatMap((series) => {
        const index = nearestIndex(series.times, time);
        return index >= 0 && series.times[index] === time ? [{ series, value: series.values[index] }] : [];
      });
    told.sort((a, b) => (b.series === point.series) - (a.series === point.series) || b.value - a.value);
    const lines = told.slice(0, TOLD_MAX).map(({ series, value }) => {
      const swatch = make("span", { className: "swatch" });
      swatch.style.background = `var(${series.colour})`;
      const className = series === point.series ? "told chosen" : "told";
      return make(
        "div",
        { className },
        swatch,
        make("span", { className: "name" }, series.name),
        make("b", {}, exact(value)),
      );
    });
    const rest = told.length - lines.length;
    fill(
      this.tip,
      make("div", { className: "when" }, dateTime(time)),
      lines,
      rest > 0 ? make("div", { className: "when" }, `and ${rest} more`) : null,
    );
    const isRight = point.x > this.chart.width * 0.55;
    this.tip.style.left = isRight ? "" : `${point.x + 14}px`;
    this.tip.style.right = isRight ? `${this.chart.width - point.x + 14}px` : "";
    this.tip.style.top = `${Math.max(4, Math.min(point.y - 20, this.chart.height - this.tip.offsetHeight - 8))}px`;
  }
}

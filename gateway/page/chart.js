// Lines over time on a canvas. A second canvas above it has the cursor, so moving the mouse does not
// draw the lines again.

import { colour, make } from "./dom.js";
import { numberAxis, timeTicks } from "./axis.js";
import { clock, short } from "./format.js";

const FONT = "12px system-ui, sans-serif";
const ABOVE = 10;
const BELOW = 26;
const RIGHT = 14;
/** The pixels between two ticks at least. */
const TICK_WIDTH = 90;
const TICK_HEIGHT = 42;
/** A shorter drag is a click. */
const DRAG_PIXELS = 6;

export class Chart {
  /**
   * Draws into a host element. `moved` is called with the chosen point `{series, index, x, y}` or
   * null, `selected` with the start and the end of a range that was dragged.
   */
  constructor(host, { moved = () => {}, selected = null } = {}) {
    this.host = host;
    this.lines = make("canvas", { "aria-hidden": "true" });
    this.cursor = make("canvas", { "aria-hidden": "true" });
    host.append(this.lines, this.cursor);
    Object.assign(this, { moved, selected, data: null, chosen: null, drag: null, strong: null });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.themed = () => this.draw();
    addEventListener("theme", this.themed);
    this.listen();
  }

  /** Ends the chart: it no longer listens to the window. */
  end() {
    this.observer.disconnect();
    removeEventListener("theme", this.themed);
  }

  /**
   * Shows `{start, end, step, fromZero, series}`. A series has `times` and `values` of one length, a `colour`
   * (the name of a custom property) and `isHidden`. Values that are no finite number leave a gap.
   */
  show(data) {
    this.data = data;
    this.chosen = null;
    this.draw();
  }

  /** Draws one series stronger than the others; null for none. */
  emphasise(series) {
    if (this.strong === series) return;
    this.strong = series;
    this.draw();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    const scale = devicePixelRatio || 1;
    for (const canvas of [this.lines, this.cursor]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    Object.assign(this, { width, height });
    this.draw();
  }

  draw() {
    if (this.data === null || !this.width) return;
    const context = this.lines.getContext("2d");
    context.clearRect(0, 0, this.width, this.height);
    context.font = FONT;
    this.scale(context);
    this.drawAxes(context);
    context.save();
    context.beginPath();
    context.rect(this.left, ABOVE - 2, this.width - this.left - RIGHT, this.height - ABOVE - BELOW + 4);
    context.clip();
    // The strong line is drawn last, above the others.
    const ordered = this.data.series.toSorted((a, b) => (a === this.strong) - (b === this.strong));
    for (const series of ordered) this.drawLine(context, series);
    context.restore();
    this.drawCursor();
  }

  /** Chooses the axes: `x` and `y` turn times and values into pixels. */
  scale(context) {
    const { start, end, series } = this.data;
    let [least, greatest] = [Infinity, -Infinity];
    for (const { values, isHidden } of series) {
      if (isHidden) continue;
      for (const value of values) {
        if (!Number.isFinite(value)) continue;
        if (value < least) least = value;
        if (value > greatest) greatest = value;
      }
    }
    if (least > greatest) [least, greatest] = [0, 1];
    if (this.data.fromZero) [least, greatest] = [Math.min(0, least), Math.max(greatest, least === 0 ? 1 : 0)];
    const number = Math.max(2, Math.floor((this.height - ABOVE - BELOW) / TICK_HEIGHT));
    this.axis = numberAxis(least, greatest, number);
    const widths = this.axis.ticks.map((tick) => context.measureText(short(tick)).width);
    this.left = Math.ceil(Math.max(...widths)) + 18;
    const length = Math.max(end - start, 1);
    const [across, down] = [this.width - this.left - RIGHT, this.height - ABOVE - BELOW];
    this.x = (time) => this.left + ((time - start) / length) * across;
    this.time = (x) => start + ((x - this.left) / across) * length;
    const size = this.axis.greatest - this.axis.least;
    this.y = (value) => ABOVE + (1 - (value - this.axis.least) / size) * down;
  }

  drawAxes(context) {
    context.strokeStyle = colour("--grid");
    context.fillStyle = colour("--muted");
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of this.axis.ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      stroke(context, this.left, y, this.width - RIGHT, y);
      context.fillText(short(tick), this.left - 8, y);
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    const number = Math.floor((this.width - this.left) / TICK_WIDTH);
    for (const { time, text } of timeTicks(this.data.start, this.data.end, number)) {
      const x = Math.round(this.x(time)) + 0.5;
      stroke(context, x, ABOVE, x, this.height - BELOW);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(x, this.width - half - 2), this.height - BELOW + 8);
    }
  }

  drawLine(context, series) {
    if (series.isHidden) return;
    const { times, values } = series;
    context.globalAlpha = this.strong === null || this.strong === series ? 1 : 0.18;
    context.strokeStyle = colour(series.colour);
    context.lineWidth = this.strong === series ? 2.5 : 1.75;
    context.lineJoin = "round";
    context.beginPath();
    const gap = this.data.step * 1.5;
    let [before, length] = [-Infinity, 0];
    for (let index = 0; index < times.length; index += 1) {
      if (!Number.isFinite(values[index])) {
        before = -Infinity;
        continue;
      }
      const [x, y] = [this.x(times[index]), this.y(values[index])];
      if (times[index] - before <= gap) {
        context.lineTo(x, y);
        length += 1;
      } else {
        // A point without neighbours is a dot.
        if (length === 0 && before !== -Infinity) dot(context, this.x(before), this.y(values[index - 1]));
        context.moveTo(x, y);
        length = 0;
      }
      before = times[index];
    }
    if (length === 0 && before !== -Infinity) dot(context, this.x(before), this.y(values[times.lastIndexOf(before)]));
    context.stroke();
    context.globalAlpha = 1;
  }

  drawCursor() {
    const context = this.cursor.getContext("2d");
    context.clearRect(0, 0, this.width, this.height);
    if (this.drag?.isLong) {
      context.fillStyle = colour("--selection");
      const [from, to] = [this.drag.from, this.drag.to];
      context.fillRect(Math.min(from, to), ABOVE, Math.abs(to - from), this.height - ABOVE - BELOW);
      return;
    }
    if (this.chosen === null) return;
    const { series, index } = this.chosen;
    const [x, y] = [this.x(series.times[index]), this.y(series.values[index])];
    context.strokeStyle = colour("--muted");
    context.setLineDash([3, 3]);
    stroke(context, Math.round(x) + 0.5, ABOVE, Math.round(x) + 0.5, this.height - BELOW);
    context.setLineDash([]);
    context.fillStyle = colour(series.colour);
    context.strokeStyle = colour("--surface");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, 4.5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }

  listen() {
    const { host } = this;
    host.addEventListener("pointermove", (event) => this.point(event));
    host.addEventListener("pointerleave", () => this.drag === null && this.choose(null));
    host.addEventListener("pointerdown", (event) => {
      if (this.selected === null || event.button !== 0 || this.data === null) return;
      host.setPointerCapture(event.pointerId);
      this.drag = { from: event.offsetX, to: event.offsetX, isLong: false };
    });
    host.addEventListener("pointerup", () => this.drop());
    host.addEventListener("pointercancel", () => (this.drag = null));
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("blur", () => this.choose(null));
  }

  point(event) {
    if (this.data === null || !this.width) return;
    const inside = Math.min(Math.max(event.offsetX, this.left), this.width - RIGHT);
    if (this.drag !== null) {
      this.drag.to = inside;
      this.drag.isLong ||= Math.abs(this.drag.to - this.drag.from) >= DRAG_PIXELS;
      this.drawCursor();
      return;
    }
    this.choose(this.nearest(inside, event.offsetY));
  }

  drop() {
    const drag = this.drag;
    this.drag = null;
    if (!drag?.isLong) return;
    this.drawCursor();
    const times = [this.time(drag.from), this.time(drag.to)].sort((a, b) => a - b);
    this.selected(times[0], times[1]);
  }

  /** The point nearest to a place: the nearest time first, then the nearest value. */
  nearest(x, y) {
    const time = this.time(x);
    let [best, distance] = [null, Infinity];
    for (const series of this.data.series) {
      if (series.isHidden) continue;
      const index = nearestIndex(series.times, time);
      if (index < 0 || !Number.isFinite(series.values[index])) continue;
      const away = Math.abs(this.x(series.times[index]) - x) * 4 + Math.abs(this.y(series.values[index]) - y);
      if (away < distance) [best, distance] = [{ series, index }, away];
    }
    return best;
  }

  choose(point) {
    this.chosen = point;
    this.drawCursor();
    if (point === null) return this.moved(null);
    const { series, index } = point;
    this.moved({ series, index, x: this.x(series.times[index]), y: this.y(series.values[index]) });
  }

  /** The arrows move the cursor: left and right by points, up and down by series. */
  key(event) {
    const shown = this.data?.series.filter(({ isHidden, times }) => !isHidden && times.length > 0) ?? [];
    const across = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[
      event.key
    ];
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.altKey || shown.length === 0 || (across ?? down) === undefined) return;
    event.preventDefault();
    const now = this.chosen ?? { series: shown[0], index: shown[0].times.length - 1 };
    const place = shown.indexOf(now.series);
    const series = shown[(place + (down ?? 0) + shown.length) % shown.length];
    const near = series === now.series ? now.index : nearestIndex(series.times, now.series.times[now.index]);
    const index = Math.min(Math.max(near + (across ?? 0), 0), series.times.length - 1);
    this.choose({ series, index });
  }

  /** The chosen point in words. */
  words() {
    const { series, index } = this.chosen;
    return `${clock(series.times[index])}: ${short(series.values[index])}, ${series.name}`;
  }
}

function stroke(context, fromX, fromY, toX, toY) {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

function dot(context, x, y) {
  context.moveTo(x + 2, y);
  context.arc(x, y, 2, 0, 2 * Math.PI);
}

/** The index of the time that is nearest to another, in an ascending list; -1 if it is empty. */
export function nearestIndex(times, time) {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && time - times[low - 1] <= times[low] - time) return low - 1;
  return low < times.length ? low : -1;
}

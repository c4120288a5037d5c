// Durations, and the range of time that a query is asked for.

/** The seconds of each unit of a duration, the longest first. */
const UNITS = [
  ["y", 31536000],
  ["w", 604800],
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
  ["ms", 0.001],
];

/** Steps that people know, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 604800];

/** The points of a line when the step is chosen by the range. */
const POINTS = 360;

/** The ranges that are one click away. */
export const RANGES = ["5m", "15m", "1h", "6h", "1d", "1w"];

/** The seconds of a duration such as `1h30m`, or of a number of seconds; null for any other text. */
export function seconds(text) {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) || null;
  if (!/^(\d+(ms|[ywdhms]))+$/.test(trimmed)) return null;
  const parts = [...trimmed.matchAll(/(\d+)(ms|[ywdhms])/g)];
  const units = new Map(UNITS);
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units.get(unit), 0) || null;
}

/** A number of seconds as a duration, in two units at most. */
export function duration(value) {
  const parts = [];
  let rest = value;
  for (const [unit, size] of UNITS) {
    const number = Math.floor(rest / size + 1e-9);
    if (number > 0 && parts.length < 2) {
      parts.push(`${number}${unit}`);
      rest -= number * size;
    }
  }
  return parts.join("") || "0s";
}

/** The step for a range in seconds: one that people know. */
export function autoStep(range) {
  const least = range / POINTS;
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / 604800) * 604800;
}

/**
 * The range of a state, in seconds since 1970. `fault` says what is wrong with the state. Starts are
 * multiples of the step, so that a line keeps its shape while the range moves.
 */
export function rangeOf(state, now) {
  const length = seconds(state.range);
  if (length === null) return { fault: `the range "${state.range}" is not a duration such as 1h30m` };
  const end = state.end === "" ? now : Date.parse(state.end) / 1000;
  if (Number.isNaN(end)) return { fault: `the end "${state.end}" is not a time of RFC 3339` };
  const step = state.step === "" ? autoStep(length) : seconds(state.step);
  if (step === null) return { fault: `the step "${state.step}" is not a duration such as 15s` };
  // A step longer than the range leaves one point.
  const last = Math.floor(end / step) * step;
  const start = Math.min(Math.ceil((end - length) / step) * step, last);
  return { start, end, step, length };
}

/** A time as the value of an input `datetime-local`, in local time. */
export function asInput(time) {
  const date = new Date(time * 1000);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, 16);
}

/** A time as the state keeps it. */
export const asState = (time) => new Date(Math.round(time) * 1000).toISOString().replace(".000Z", "Z");

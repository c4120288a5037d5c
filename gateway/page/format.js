// Numbers, times and label sets as people read them.

const SUFFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A number of at most five digits, with a suffix from a thousand on: 12.3k. */
export function short(value) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "Inf");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(2);
  for (const [unit, suffix] of SUFFIXES) {
    if (size >= unit) return `${trimmed(value / unit)}${suffix}`;
  }
  return trimmed(value);
}

/** At most four significant digits, without zeros at the end. */
function trimmed(value) {
  return String(Number(value.toPrecision(4)));
}

/** A number grouped by thousands: whole numbers in full, others with six digits or two decimals. */
export function exact(value) {
  if (!Number.isFinite(value)) return short(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(5);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const whole = Math.floor(Math.log10(Math.max(size, 1))) + 1;
  return value.toLocaleString("en", { maximumSignificantDigits: Math.max(6, whole + 2) });
}

/** A whole number, grouped by thousands. */
export const count = (value) => Math.round(value).toLocaleString("en");

/** `1 series`, `2 series`, `1 value`, `2 values`. */
export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Bytes in units of 1024. */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${trimmed(value)} ${units[unit]}`;
}

const two = (value) => String(value).padStart(2, "0");

/** A local time of day, of seconds since 1970. */
export function clock(seconds) {
  const time = new Date(seconds * 1000);
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** A local date and time, of seconds since 1970: 2026-11-25 16:50:16. */
export function dateTime(seconds) {
  const time = new Date(seconds * 1000);
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock(seconds)}`;
}

/** A label set as PromQL writes it: up{job="a"}. `left` are labels to leave out. */
export function labelSet(metric, left = new Set()) {
  const name = left.has("__name__") ? "" : (metric.__name__ ?? "");
  const labels = Object.entries(metric)
    .filter(([label]) => label !== "__name__" && !left.has(label))
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`);
  if (labels.length === 0 && name !== "") return name;
  return `${name}{${labels.join(", ")}}`;
}

/** The labels that all of several label sets have with one value, as an object. */
export function common(metrics) {
  if (metrics.length < 2) return {};
  const [first, ...rest] = metrics;
  const shared = Object.entries(first).filter(([label, value]) => rest.every((other) => other[label] === value));
  return Object.fromEntries(shared);
}

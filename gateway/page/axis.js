// Ticks of axes: round numbers, and round local times.

/** Steps between times, in seconds, up to a week. */
const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
];

/** Returns the least and the greatest number of an axis that shows both numbers, and its ticks. */
export function numberAxis(least, greatest, number) {
  if (least === greatest) {
    const half = Math.abs(least) / 2 || 1;
    least -= half;
    greatest += half;
  }
  // An axis that nearly reaches 0 begins there.
  if (least > 0 && least < greatest * 0.5) least = 0;
  if (greatest < 0 && greatest > least * 0.5) greatest = 0;
  const step = roundStep((greatest - least) / number);
  const first = Math.floor(least / step + 1e-9);
  const last = Math.ceil(greatest / step - 1e-9);
  // Multiples, because sums would gather errors.
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  return { least: first * step, greatest: last * step, ticks };
}

/** The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below a number. */
function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Returns ticks `{time, text}` of a time axis, at most `number`. Times are seconds since 1970. */
export function timeTicks(start, end, number) {
  const least = (end - start) / Math.max(1, number);
  const step = TIME_STEPS.find((one) => one >= least) ?? Math.ceil(least / 604800) * 604800;
  // Days begin at local midnight.
  const offset = new Date(start * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((start - offset) / step) * step + offset;
  const ticks = [];
  for (let time = first; time <= end; time += step) ticks.push({ time, text: tickText(time, step) });
  return ticks;
}

function tickText(time, step) {
  const date = new Date(time * 1000);
  const two = (value) => String(value).padStart(2, "0");
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (step >= 86400 || isMidnight) return date.toLocaleDateString("en", { month: "short", day: "numeric" });
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return step < 60 ? `${text}:${two(date.getSeconds())}` : text;
}

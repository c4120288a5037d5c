// The text of a query: its tokens, and what is being written at a place in it. The gateway decides
// what a query means; this is for colours and completion only, and takes any text.

/** Functions and their arguments. Experimental ones, which the gateway refuses, are left out. */
export const FUNCTIONS = {
  abs: "vector", absent: "vector", absent_over_time: "range", acos: "vector", acosh: "vector", asin: "vector",
  asinh: "vector", atan: "vector", atanh: "vector", avg_over_time: "range", ceil: "vector", changes: "range",
  clamp: "vector, min, max", clamp_max: "vector, max", clamp_min: "vector, min", cos: "vector", cosh: "vector",
  count_over_time: "range", day_of_month: "vector", day_of_week: "vector", day_of_year: "vector",
  days_in_month: "vector", deg: "vector", delta: "range", deriv: "range", exp: "vector", first_over_time: "range",
  floor: "vector", histogram_avg: "vector", histogram_count: "vector", histogram_fraction: "lower, upper, vector",
  histogram_quantile: "quantile, buckets", histogram_stddev: "vector", histogram_stdvar: "vector",
  histogram_sum: "vector", hour: "vector", idelta: "range", increase: "range", irate: "range",
  label_join: "vector, label, separator, label …", label_replace: "vector, label, replacement, label, regex",
  last_over_time: "range", ln: "vector", log10: "vector", log2: "vector", max_over_time: "range",
  min_over_time: "range", minute: "vector", month: "vector", pi: "", predict_linear: "range, seconds",
  present_over_time: "range", quantile_over_time: "quantile, range", rad: "vector", rate: "range",
  resets: "range", round: "vector, unit", scalar: "vector", sgn: "vector", sin: "vector", sinh: "vector",
  sort: "vector", sort_desc: "vector", sqrt: "vector", stddev_over_time: "range", stdvar_over_time: "range",
  sum_over_time: "range", tan: "vector", tanh: "vector", time: "", timestamp: "vector", vector: "scalar",
  year: "vector",
};

/** Aggregations; those in the second list take a parameter before the vector. */
export const AGGREGATIONS = ["avg", "count", "group", "max", "min", "stddev", "stdvar", "sum"];
export const WITH_PARAMETER = ["bottomk", "count_values", "quantile", "topk"];

/** Words that are neither functions nor aggregations. */
export const KEYWORDS = [
  "and", "atan2", "bool", "by", "group_left", "group_right", "ignoring", "offset", "on", "or", "unless", "without",
];

/** Keywords that a list of labels follows. */
const GROUPING = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);

const PATTERN = new RegExp(
  [
    String.raw`(?<space>\s+)`,
    String.raw`(?<comment>#[^\n]*)`,
    String.raw`(?<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|${"`"}[^${"`"}]*${"`"}?)`,
    String.raw`(?<duration>(?:\d+(?:ms|[ywdhms]))+(?![A-Za-z0-9_]))`,
    String.raw`(?<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)`,
    String.raw`(?<word>[A-Za-z_:][A-Za-z0-9_:]*)`,
    String.raw`(?<operator>=~|!~|!=|==|<=|>=|[-+*/%^=<>@])`,
    String.raw`(?<bracket>[(){}\[\]])`,
    String.raw`(?<other>[\s\S])`,
  ].join("|"),
  "gu",
);

/** Returns the tokens of a text, which together are the text: `{kind, text, start, end}`. */
export function tokens(text) {
  return Array.from(text.matchAll(PATTERN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return { kind, text: match[0], start: match.index, end: match.index + match[0].length };
  });
}

/** Returns the tokens with the class of the colour that each has. */
export function coloured(text) {
  const all = tokens(text);
  const open = [];
  let before = null;
  return all.map((token, index) => {
    // Labels stand in braces, and in the parentheses after words such as `by`.
    if (token.text === "{") open.push(true);
    else if (token.text === "(") open.push(before !== null && GROUPING.has(before.text.toLowerCase()));
    else if (token.text === "}" || token.text === ")") open.pop();
    if (token.kind !== "space" && token.kind !== "comment") before = token;
    const next = all.slice(index + 1).find(({ kind }) => kind !== "space");
    return { ...token, colour: colourOf(token, open.at(-1) === true, next) };
  });
}

function colourOf(token, isLabel, next) {
  if (token.kind !== "word") return token.kind;
  if (isLabel) return "label";
  const word = token.text.toLowerCase();
  if (KEYWORDS.includes(word)) return "keyword";
  if (AGGREGATIONS.includes(word) || WITH_PARAMETER.includes(word)) return "function";
  return next?.text === "(" ? "function" : "metric";
}

/**
 * What is being written at a place: `{kind, start, end, part, metric, label, isQuoted}`. The text
 * from `start` to `end` is what a completion replaces, and `part` is what there is of it.
 *
 * | kind | is |
 * |---|---|
 * | name | a metric, function, aggregation or keyword |
 * | label | the name of a label, of `metric` if that is known |
 * | value | the value of `label`, inside of quotes if `isQuoted` |
 * | duration | the range of a selector |
 * | none | nothing that can be completed |
 */
export function contextAt(text, place) {
  const before = tokens(text.slice(0, place)).filter(({ kind }) => kind !== "space");
  const last = before.at(-1);
  const isPart = last !== undefined && last.end === place && last.kind === "word";
  const start = isPart ? last.start : place;
  const rest = /^[A-Za-z0-9_:]*/.exec(text.slice(place))[0];
  const found = { start, end: isPart ? place + rest.length : place, part: isPart ? last.text : "" };
  const around = enclosing(isPart ? before.slice(0, -1) : before);
  if (last?.kind === "comment" && !text.slice(last.start, place).includes("\n")) return { ...found, kind: "none" };
  if (around.open === "{") return inBraces(text, place, before, around, found);
  if (last?.kind === "string" && isUnclosed(last)) return { ...found, kind: "none" };
  if (around.open === "(" && GROUPING.has(around.word.toLowerCase())) {
    return { ...found, kind: "label", metric: metricOf(text) };
  }
  if (around.open === "[") {
    const part = /[0-9a-z]*$/.exec(text.slice(0, place))[0];
    return { ...found, kind: "duration", part, start: place - part.length };
  }
  const isName = isPart || last === undefined || !["number", "string", "duration"].includes(last.kind);
  return { ...found, kind: isName ? "name" : "none" };
}

/** The innermost bracket that is open, the word before it, and the tokens inside. */
function enclosing(before) {
  const open = [];
  before.forEach((token, index) => {
    if (token.kind !== "bracket") return;
    if ("({[".includes(token.text)) open.push(index);
    else open.pop();
  });
  const at = open.at(-1);
  if (at === undefined) return { open: "", word: "", inside: before };
  const word = before[at - 1]?.kind === "word" ? before[at - 1].text : "";
  return { open: before[at].text, word, inside: before.slice(at + 1) };
}

/** Inside of braces: the name of a label, or the value after its operator. */
function inBraces(text, place, before, around, found) {
  const last = before.at(-1);
  const metric = around.word || nameIn(around.inside);
  const isString = last?.kind === "string" && last.end === place && isUnclosed(last);
  const operator = isString ? before.at(-2) : last;
  const label = isString ? before.at(-3) : before.at(-2);
  if (["=", "!=", "=~", "!~"].includes(operator?.text) && label?.kind === "word") {
    const start = isString ? last.start + 1 : place;
    const rest = isString ? /^[^"'`\n,}]*/.exec(text.slice(place))[0] : "";
    const part = text.slice(start, place);
    return { kind: "value", start, end: place + rest.length, part, metric, label: label.text, isQuoted: isString };
  }
  const isName = around.inside.length === 0 || last.kind === "word" || [",", "{"].includes(last.text);
  return { ...found, kind: isName ? "label" : "none", metric };
}

/** Whether a string has no end yet. */
function isUnclosed({ text }) {
  return text.length < 2 || text.at(-1) !== text[0] || /(^|[^\\])(\\\\)*\\.$/.test(text);
}

/** The metric that matchers name by `__name__`; empty if there is none. */
function nameIn(inside) {
  const at = inside.findIndex((token) => token.text === "__name__");
  const [operator, value] = [inside[at + 1], inside[at + 2]];
  return at >= 0 && operator?.text === "=" && value?.kind === "string" ? value.text.slice(1, -1) : "";
}

/** The first metric of a query; empty if there is none. */
export function metricOf(text) {
  return coloured(text).find(({ colour }) => colour === "metric")?.text ?? "";
}

/**
 * The place of a fault that an error names as `line:column:`, as an index of the text; null if the
 * error names none. Columns count bytes of UTF-8 from 1.
 */
export function faultPlace(text, error) {
  const found = /(?:^|[ :"])(\d+):(\d+): /.exec(error);
  if (found === null) return null;
  const [line, column] = [Number(found[1]), Number(found[2])];
  const lines = text.split("\n");
  if (line < 1 || line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const prefix = new TextEncoder().encode(lines[line - 1]).slice(0, Math.max(0, column - 1));
  return Math.min(before + new TextDecoder().decode(prefix).length, text.length);
}

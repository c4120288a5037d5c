// Completions: what could stand at a place of a query, the best first.

import { contextAt, FUNCTIONS, AGGREGATIONS, WITH_PARAMETER, KEYWORDS } from "./promql.js";
import { labels, metrics, values } from "./names.js";

/** The items that a list shows. */
const SHOWN_MAX = 60;

const DURATIONS = ["1m", "5m", "10m", "15m", "30m", "1h", "6h", "1d", "7d"];

/** Functions, aggregations and keywords, as items. */
const WORDS = [
  ...Object.entries(FUNCTIONS).map(([name, takes]) => ({
    text: name,
    insert: `${name}(`,
    kind: "function",
    note: `(${takes})`,
  })),
  ...AGGREGATIONS.map((name) => ({ text: name, insert: `${name}(`, kind: "aggregation", note: "(vector)" })),
  ...WITH_PARAMETER.map((name) => ({
    text: name,
    insert: `${name}(`,
    kind: "aggregation",
    note: "(parameter, vector)",
  })),
  ...KEYWORDS.map((name) => ({ text: name, insert: name, kind: "keyword", note: "" })),
];

/**
 * Returns `{items, start, end}` for a place of a text. An item has the text that is shown, the text
 * that is inserted from `start` to `end`, its kind and a note. Throws what the API throws.
 */
export async function completions(text, place) {
  const context = contextAt(text, place);
  const { start, end } = context;
  const items = ranked(await candidates(context), context.part);
  // What is already there in full needs no completion.
  const isDone = items.length === 1 && items[0].text === context.part;
  return { items: isDone ? [] : items.slice(0, SHOWN_MAX), start, end };
}

async function candidates(context) {
  const items = (list, kind) => list.items.map((text) => ({ text, insert: text, kind, note: "" }));
  switch (context.kind) {
    case "name":
      return [...items(await metrics(context.part), "metric"), ...WORDS];
    case "label":
      return items(await labels(context.metric), "label").filter(({ text }) => text !== "__name__");
    case "value": {
      const found = items(await values(context.label, context.metric), "value");
      const quote = (text) => (context.isQuoted ? JSON.stringify(text).slice(1, -1) : JSON.stringify(text));
      return found.map((item) => ({ ...item, insert: quote(item.text) }));
    }
    case "duration":
      return DURATIONS.map((text) => ({ text, insert: text, kind: "duration", note: "" }));
    default:
      return [];
  }
}

/** Items that contain a part, without regard to case: those that begin with it first. */
function ranked(items, part) {
  const wanted = part.toLowerCase();
  const rank = ({ text }) => {
    const name = text.toLowerCase();
    if (name.startsWith(wanted)) return 0;
    if (name.includes(`_${wanted}`)) return 1;
    return name.includes(wanted) ? 2 : 3;
  };
  const found = items.map((item) => ({ item, rank: rank(item) })).filter((one) => one.rank < 3);
  return found.sort((a, b) => a.rank - b.rank).map((one) => one.item);
}

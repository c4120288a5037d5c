// The text of a query: tokens, colours, and what is being written at a place.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AGGREGATIONS, coloured, contextAt, FUNCTIONS, KEYWORDS, tokens } from "../../gateway/page/promql.js";

/** The context at the mark `|` of a text. */
function contextOf(marked) {
  const place = marked.indexOf("|");
  return contextAt(marked.replace("|", ""), place);
}

test("tokens together are the text, whatever it is", () => {
  for (const text of ["", "sum by (job) (rate(x[5m]))", "{a=\"b", "\"é\\\"\" # c\n@ 1e3", "\u{1f600}}]", "0x1f 5m30s"]) {
    assert.equal(tokens(text).map((token) => token.text).join(""), text);
  }
});

test("durations are one token, and numbers before words are not durations", () => {
  const kinds = (text) => tokens(text).map(({ kind }) => kind);
  assert.deepEqual(kinds("1h30m"), ["duration"]);
  assert.deepEqual(kinds("5"), ["number"]);
  assert.deepEqual(kinds("5e3"), ["number"]);
});

test("a word has the colour of what it means at its place", () => {
  const colourOf = (text, word) => coloured(text).find((token) => token.text === word).colour;
  const query = "sum by (job) (rate(requests_total{code=\"200\"}[5m])) and up";
  assert.equal(colourOf(query, "sum"), "function");
  assert.equal(colourOf(query, "rate"), "function");
  assert.equal(colourOf(query, "by"), "keyword");
  assert.equal(colourOf(query, "job"), "label");
  assert.equal(colourOf(query, "code"), "label");
  assert.equal(colourOf(query, "requests_total"), "metric");
  assert.equal(colourOf(query, "5m"), "duration");
  assert.equal(colourOf(query, "and"), "keyword");
});

test("the place says what a completion is for", () => {
  const cases = [
    ["ra|te", "name", "ra"],
    ["|", "name", ""],
    ["up{jo|}", "label", "jo"],
    ["up{job=\"a|\"}", "value", "a"],
    ["sum by (in|) (up)", "label", "in"],
    ["rate(up[5|", "duration", "5"],
    ["up # co|", "none", undefined],
  ];
  for (const [marked, kind, part] of cases) {
    const context = contextOf(marked);
    assert.equal(context.kind, kind, marked);
    if (part !== undefined) assert.equal(context.part, part, marked);
  }
  assert.equal(contextOf("up{job=\"a|\"}").label, "job");
  assert.equal(contextOf("up{job=\"a|\"}").metric, "up");
});

test("no word is in two lists", () => {
  const all = [...Object.keys(FUNCTIONS), ...AGGREGATIONS, ...KEYWORDS];
  assert.equal(new Set(all).size, all.length);
});

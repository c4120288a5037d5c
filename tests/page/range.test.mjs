// Durations, and the range of time that a query is asked for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asState, autoStep, duration, rangeOf, seconds } from "../../gateway/page/range.js";

test("durations are read and written", () => {
  assert.equal(seconds("1h30m"), 5400);
  assert.equal(seconds(" 15 "), 15);
  assert.equal(seconds("250ms"), 0.25);
  for (const text of ["", "0", "x", "5 m", "-1h", "1h 30m"]) assert.equal(seconds(text), null, text);
  assert.equal(duration(5400), "1h30m");
  assert.equal(duration(90061), "1d1h");
  assert.equal(duration(0), "0s");
});

test("a step leaves 360 points at most", () => {
  for (const range of [1, 60, 3600, 86400, 604800, 31536000, 315360000]) {
    assert.ok(range / autoStep(range) <= 360, String(range));
  }
});

test("a range begins at a multiple of its step", () => {
  const state = { range: "1h", end: "2023-11-14T22:14:27Z", step: "15s" };
  const { start, end, step, length } = rangeOf(state, 0);
  assert.deepEqual([step, length], [15, 3600]);
  assert.equal(end, Date.parse(state.end) / 1000);
  assert.ok(start % 15 === 0 && end - start <= 3600 && end - start > 3585);
  assert.equal(rangeOf({ range: "5m", end: "", step: "" }, 1e9).end, 1e9);
  const one = rangeOf({ range: "1m", end: "", step: "1h" }, 7200);
  assert.equal(one.start, one.end);
});

test("what is wrong with a state is said", () => {
  const faultOf = (changes) => rangeOf({ range: "1h", end: "", step: "", ...changes }, 0).fault;
  assert.match(faultOf({ range: "x" }), /range "x"/);
  assert.match(faultOf({ end: "x" }), /end "x"/);
  assert.match(faultOf({ step: "x" }), /step "x"/);
  assert.equal(faultOf({}), undefined);
});

test("the state keeps whole seconds", () => {
  assert.equal(asState(1700000000.4), "2023-11-14T22:13:20Z");
});

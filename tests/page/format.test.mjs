// Numbers, label sets and ticks as people read them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { numberAxis, timeTicks } from "../../gateway/page/axis.js";
import { bytes, common, counted, exact, labelSet, short } from "../../gateway/page/format.js";

test("numbers are short or exact", () => {
  assert.deepEqual([0, 999, 12345, -2.5e6, 1e15, NaN, Infinity].map(short), [
    "0", "999", "12.35k", "-2.5M", "1.00e+15", "NaN", "Inf",
  ]);
  assert.deepEqual([1234567, 0.125, 1e-5].map(exact), ["1,234,567", "0.125", "1.00000e-5"]);
  assert.equal(bytes(1536), "1.5 KiB");
  assert.deepEqual([counted(1, "value"), counted(2, "series", "series")], ["1 value", "2 series"]);
});

test("label sets are written as in PromQL", () => {
  const metric = { __name__: "up", job: "a\"b", zone: "1" };
  assert.equal(labelSet(metric), "up{job=\"a\\\"b\", zone=\"1\"}");
  assert.equal(labelSet(metric, new Set(["__name__", "zone"])), "{job=\"a\\\"b\"}");
  assert.equal(labelSet({ __name__: "up" }), "up");
  assert.deepEqual(common([{ a: "1", b: "2" }, { a: "1", b: "3" }]), { a: "1" });
});

test("axes have round numbers that include the values", () => {
  for (const [least, greatest] of [[0, 1], [3, 3], [-7, 1234.5], [99.9, 100.1], [1e-9, 2e-9]]) {
    const axis = numberAxis(least, greatest, 5);
    assert.ok(axis.least <= least && axis.greatest >= greatest, `${least} ${greatest}`);
    assert.ok(axis.ticks.length >= 2 && axis.ticks.length <= 12, String(axis.ticks));
  }
});

test("ticks of time lie in the range, and are no more than wanted", () => {
  for (const length of [60, 3600, 86400, 86400 * 40]) {
    const ticks = timeTicks(1700000000, 1700000000 + length, 6);
    assert.ok(ticks.length >= 1 && ticks.length <= 7, String(length));
    assert.ok(ticks.every(({ time }) => time >= 1700000000 && time <= 1700000000 + length));
  }
});

// A query as a statement of SQL.

import assert from "node:assert/strict";
import { test } from "node:test";
import { literal, statementOf } from "../../gateway/page/sql.js";

const RANGE = { start: 1700000000, end: 1700000060, step: 7.5 };

test("quotes end no literal", () => {
  assert.equal(literal("a'b''c"), "'a''b''''c'");
  assert.equal(literal("\\"), "'\\'");
});

test("a graph is a range of steps", () => {
  assert.equal(
    statementOf({ q: " up{job='a'} ", show: "graph" }, RANGE),
    "SELECT ts, labels, value\n  FROM lanes.promql_range('up{job=''a''}',\n" +
      "    '2023-11-14T22:13:20.000Z', '2023-11-14T22:14:20.000Z', '7.5 seconds')\n  ORDER BY labels, ts;",
  );
});

test("a table is the end of the range", () => {
  assert.equal(
    statementOf({ q: "up", show: "table" }, RANGE),
    "SELECT labels, value\n  FROM lanes.promql('up',\n    '2023-11-14T22:14:20.000Z');",
  );
});

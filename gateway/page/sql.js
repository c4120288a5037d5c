// A query as a statement of SQL, which runs it without the gateway.

/** A text as a literal of SQL. */
export const literal = (text) => `'${text.replaceAll("'", "''")}'`;

const time = (seconds) => literal(new Date(Math.round(seconds * 1000)).toISOString());

/** The statement that returns what a state of the page shows for a range of `rangeOf`. */
export function statementOf({ q, show }, { start, end, step }) {
  const query = literal(q.trim());
  if (show === "table") return `SELECT labels, value\n  FROM lanes.promql(${query},\n    ${time(end)});`;
  const times = `${time(start)}, ${time(end)}, ${literal(`${step} seconds`)}`;
  return `SELECT ts, labels, value\n  FROM lanes.promql_range(${query},\n    ${times})\n  ORDER BY labels, ts;`;
}

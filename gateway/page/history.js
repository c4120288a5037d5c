// The latest queries that were answered, kept by the browser.

const KEY = "lanes.queries";
const KEPT_MAX = 50;

/** Queries, the latest first. */
export function remembered() {
  try {
    const queries = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(queries) ? queries.filter((query) => typeof query === "string") : [];
  } catch {
    return [];
  }
}

/** Keeps a query as the latest. */
export function remember(query) {
  const others = remembered().filter((other) => other !== query);
  try {
    localStorage.setItem(KEY, JSON.stringify([query, ...others].slice(0, KEPT_MAX)));
  } catch {
    // A browser that stores nothing has no history.
  }
}

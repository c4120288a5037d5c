// Names of metrics and labels, and values of labels, asked for once and kept for a while.

import { ask, inAddress, selector } from "./api.js";

/** Names and values that are asked for at most. */
export const NAMES_MAX = 10000;
const VALUES_MAX = 1000;

/** What was asked for is asked again after this time. */
const KEPT_MS = 60000;

const kept = new Map();

/** Returns `{items, isCut}` of a route, from memory if it was asked within the last minute. */
async function list(path, parameters) {
  const key = JSON.stringify([path, parameters]);
  const known = kept.get(key);
  if (known && Date.now() - known.at < KEPT_MS) return known.answer;
  const answer = ask(path, parameters).then(({ data, warnings }) => ({ items: data, isCut: warnings.length > 0 }));
  kept.set(key, { at: Date.now(), answer });
  // A failure is not kept.
  answer.catch(() => kept.delete(key));
  return answer;
}

/** Names of metrics. If there are too many to keep, the gateway is asked for those with the part. */
export async function metrics(part) {
  const all = await list("api/v1/label/__name__/values", { limit: NAMES_MAX });
  if (!all.isCut || part === "") return all;
  const regex = `(?i:.*${part.replace(/[^A-Za-z0-9_:]/g, ".")}.*)`;
  return list("api/v1/label/__name__/values", { "match[]": `{__name__=~${JSON.stringify(regex)}}`, limit: VALUES_MAX });
}

/** Names of labels, of all series or of those of a metric. */
export function labels(metric) {
  const match = metric === "" ? "" : selector(metric);
  return list("api/v1/labels", { "match[]": match, limit: VALUES_MAX });
}

/** Values of a label, of all series or of those of a metric. */
export function values(label, metric) {
  const match = metric === "" ? "" : selector(metric);
  return list(`api/v1/label/${inAddress(label)}/values`, { "match[]": match, limit: VALUES_MAX });
}

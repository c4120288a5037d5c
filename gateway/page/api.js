// Requests to the gateway. Addresses are relative, so the page also works below a path of a proxy.

import { authorized, usesToken } from "./token.js";

/** Why there is no answer: the gateway's kind and words. */
export class Failure extends Error {
  constructor(kind, text, status = 0) {
    super(text);
    this.kind = kind;
    this.status = status;
  }
}

/** Whether an error says that a request was cancelled by this page. */
export const isAbort = (error) => error?.name === "AbortError";

/**
 * Asks a route of the query API, and returns `{data, warnings, infos}`.
 *
 * Parameters are pairs or an object; empty ones are left out. With `post` they are sent as a form,
 * which may be longer than an address. Throws a Failure, or the AbortError of `signal`.
 */
export async function ask(path, parameters = {}, { signal, post = false } = {}) {
  const pairs = Array.isArray(parameters) ? parameters : Object.entries(parameters);
  const form = new URLSearchParams(pairs.filter(([, value]) => value !== "" && value !== undefined));
  const options = { signal, headers: { Accept: "application/json" } };
  let address = path;
  if (post) Object.assign(options, { method: "POST", body: form });
  else if (form.size > 0) address += `?${form}`;
  const { text, status } = await fetched(address, options);
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    const reason = status < 400 ? `the answer is not complete: ${text.slice(-200)}` : text.trim();
    throw new Failure("unreadable", reason, status);
  }
  if (body.status !== "success") throw new Failure(body.errorType, body.error, status);
  return { data: body.data, warnings: body.warnings ?? [], infos: body.infos ?? [] };
}

/** Returns the JSON of a route that is not Prometheus's. */
export async function json(path, options = {}) {
  const { text, status } = await fetched(path, options);
  if (status >= 400) throw new Failure("refused", text.trim(), status);
  return JSON.parse(text);
}

/** Returns the status and the text of a route, whatever the status. */
export const text = (path, options = {}) => fetched(path, options);

async function fetched(address, options) {
  try {
    const answer = await fetch(address, authorized(options));
    if (answer.status === 401 && usesToken()) dispatchEvent(new Event("unauthorized"));
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Failure("unreachable", "the gateway does not answer, or ended its answer early");
  }
}

/** A selector of all series of a metric; `matchers` are further ones, such as `job="a"`. */
export function selector(metric, matchers = []) {
  const all = metric === "" ? matchers : [`__name__=${quoted(metric)}`, ...matchers];
  return `{${all.join(",")}}`;
}

/** A text as a string of PromQL. */
export const quoted = (text) => JSON.stringify(text);

/** The name of a label as a part of an address: what is no word is escaped with `U__`. */
export function inAddress(name) {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !name.startsWith("U__")) return name;
  const escaped = Array.from(name, (character) => {
    if (character === "_") return "__";
    return /[A-Za-z0-9]/.test(character) ? character : `_${character.codePointAt(0).toString(16)}_`;
  });
  return `U__${escaped.join("")}`;
}

// The token of a user, and the address at which requests have it.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { authorized, forgetToken, keepToken, token } from "../../gateway/page/token.js";

const stored = new Map();
const storage = {
  getItem: (key) => stored.get(key) ?? null,
  setItem: (key, value) => stored.set(key, value),
  removeItem: (key) => stored.delete(key),
};

beforeEach(() => {
  globalThis.sessionStorage = storage;
  globalThis.location = { pathname: "/lanes/token" };
  forgetToken();
});

test("requests have the token, and browsers ask for no password instead", () => {
  assert.equal(keepToken(" secret "), true);
  assert.equal(token(), "secret");
  const options = authorized({ method: "POST", headers: { Accept: "a" } });
  assert.deepEqual(options, {
    method: "POST",
    headers: { Accept: "a", Authorization: "Bearer secret" },
    credentials: "omit",
  });
});

test("at other addresses the browser has the credentials", () => {
  keepToken("secret");
  location.pathname = "/";
  const options = { headers: {} };
  assert.equal(authorized(options), options);
});

test("what no header can have is not kept", () => {
  for (const text of ["", " ", "a b", "é", "a\nb"]) assert.equal(keepToken(text), false, JSON.stringify(text));
  assert.equal(token(), "");
});

test("a browser that stores nothing has the token until the page is left", () => {
  const refuse = () => {
    throw new Error("no storage");
  };
  globalThis.sessionStorage = { getItem: refuse, setItem: refuse, removeItem: refuse };
  assert.equal(keepToken("secret"), true);
  assert.equal(token(), "secret");
  forgetToken();
  assert.equal(token(), "");
});

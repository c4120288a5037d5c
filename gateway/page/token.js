// The token of a user, at the address `/token`. At `/` the browser itself asks for a name and a
// password, and sends them with every request of the page.

const KEY = "lanes.token";
/** The token if the browser stores nothing. */
let unstored = "";

/** Whether this is the address at which the page sends a token. */
export const usesToken = () => location.pathname.endsWith("/token");

/** The token, which is kept until the tab is closed; empty if there is none. */
export function token() {
  try {
    return sessionStorage.getItem(KEY) ?? unstored;
  } catch {
    return unstored;
  }
}

/** Keeps a token. Returns false, and keeps nothing, if a header cannot have this text. */
export function keepToken(text) {
  const trimmed = text.trim();
  if (!/^[\x21-\x7e]+$/.test(trimmed)) return false;
  unstored = trimmed;
  try {
    sessionStorage.setItem(KEY, trimmed);
  } catch {
    // The token then holds until the page is left.
  }
  return true;
}

/** Forgets the token. */
export function forgetToken() {
  unstored = "";
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was stored.
  }
}

/** The options of a request, with the token if the page sends one. */
export function authorized(options) {
  if (!usesToken()) return options;
  const headers = { ...options.headers, Authorization: `Bearer ${token()}` };
  // Without `omit`, the browser would ask for a name and a password after a token that is refused.
  return { ...options, headers, credentials: "omit" };
}

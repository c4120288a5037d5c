// Asks for a token, at the address where the page sends one.

import { byId } from "./dom.js";
import { forgetToken, keepToken, token, usesToken } from "./token.js";

const REASONS = {
  missing: "Enter the token of a user. The browser keeps it until this tab is closed.",
  refused: "The gateway does not take this token. Enter another one.",
  malformed: "A token consists of letters, digits and signs of ASCII, without spaces.",
};

function askFor(reason) {
  byId("sign-in-why").textContent = REASONS[reason];
  byId("token").value = "";
  if (!byId("sign-in").open) byId("sign-in").showModal();
}

/** Returns whether requests may be sent. Otherwise the page is loaded again once there is a token. */
export function signedIn() {
  if (!usesToken()) return true;
  byId("sign-in").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (keepToken(byId("token").value)) location.reload();
    else askFor("malformed");
  });
  // A page without a token shows nothing, so the question cannot be put away.
  byId("sign-in").addEventListener("cancel", (event) => event.preventDefault());
  byId("sign-out").addEventListener("click", () => {
    forgetToken();
    location.reload();
  });
  addEventListener("unauthorized", () => askFor("refused"));
  byId("sign-out").hidden = token() === "";
  if (token() === "") askFor("missing");
  return token() !== "";
}

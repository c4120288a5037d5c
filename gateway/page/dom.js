// Elements of the page. Text is always a text node, so names and values of labels are never markup.

/** Returns the element with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * Makes an element. Properties whose names have a hyphen or are `role` or `for` become attributes,
 * functions become listeners, all others are set. Children are nodes or texts; null is left out.
 */
export function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Replaces what an element contains. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

/** Tells users of screen readers what happened. */
export function speak(text) {
  byId("spoken").textContent = text;
}

/** Returns a function that calls `work` once nobody has called it for `ms` milliseconds. */
export function whenQuiet(ms, work) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), ms);
  };
}

const colours = new Map();
addEventListener("theme", () => colours.clear());

/** The colour that a custom property has in the current theme, as canvases take it. */
export function colour(name) {
  if (!colours.has(name)) {
    const probe = byId("spoken");
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
    probe.style.color = "";
  }
  return colours.get(name);
}

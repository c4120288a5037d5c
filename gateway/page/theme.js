// Light or dark. A classic script, so that it runs before the page is drawn. Without a choice, the
// system decides.
"use strict";

{
  const KEY = "lanes.theme";
  const CHOICES = ["system", "light", "dark"];

  /** The stored choice; `system` if there is none, or if the browser stores nothing. */
  const stored = () => {
    try {
      const choice = localStorage.getItem(KEY);
      return CHOICES.includes(choice) ? choice : "system";
    } catch {
      return "system";
    }
  };

  const apply = (choice) => {
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${choice}`;
    // Canvases are drawn again in the new colours.
    window.dispatchEvent(new Event("theme"));
  };

  apply(stored());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(stored()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(stored());
    document.getElementById("theme").addEventListener("click", () => {
      const next = CHOICES[(CHOICES.indexOf(stored()) + 1) % CHOICES.length];
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // The choice then holds until the page is left.
      }
      apply(next);
    });
  });
}

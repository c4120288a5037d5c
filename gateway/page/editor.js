// The box that a query is written in: colours, completions, history, the place of a fault.
//
// The text area is transparent above a `pre` with the same text in colours, so typing, selection and
// undo are those of the browser.

import { byId, fill, make, speak, whenQuiet } from "./dom.js";
import { coloured, tokens } from "./promql.js";
import { completions } from "./complete.js";

/** The pause in typing after which completions are looked up. */
const PAUSE_MS = 80;

export class Editor {
  /** `run` is called to evaluate the text, `history` returns earlier queries, the latest first. */
  constructor({ run, history }) {
    this.box = byId("expression");
    this.pre = byId("colours");
    this.list = byId("choices");
    this.run = run;
    this.history = history;
    this.choices = null;
    this.fault = null;
    this.asked = 0;
    this.lookUpSoon = whenQuiet(PAUSE_MS, () => this.lookUp());
    this.listen();
  }

  get text() {
    return this.box.value;
  }

  set text(value) {
    if (this.box.value !== value) this.box.value = value;
    this.close();
    this.paint();
  }

  /** Marks the place of a fault, an index of the text; null to mark none. */
  mark(place) {
    this.fault = place;
    this.paint();
  }

  listen() {
    this.box.addEventListener("input", () => {
      this.fault = null;
      this.paint();
      this.lookUpSoon();
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("blur", () => this.close());
    this.box.addEventListener("click", () => this.close());
    // The list is chosen from with the mouse while the box keeps the focus.
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const row = event.target.closest("li");
      if (row) this.take(Number(row.dataset.index));
    });
    byId("history").addEventListener("click", () => this.showHistory());
  }

  key(event) {
    const isOpen = this.choices !== null;
    const withControl = event.ctrlKey || event.metaKey;
    const act = {
      ArrowDown: () => (isOpen ? this.choose(1) : this.text.trim() === "" && this.showHistory()),
      ArrowUp: () => isOpen && this.choose(-1),
      Tab: () => isOpen && this.take(Math.max(0, this.chosen)),
      Escape: () => isOpen && this.close(),
      Enter: () => this.enter(event, withControl),
      " ": () => withControl && this.lookUp(),
    }[event.key];
    if (act === undefined || event.isComposing || event.altKey) return;
    if (act() === false) return;
    event.preventDefault();
    event.stopPropagation();
  }

  enter(event, withControl) {
    if (event.shiftKey && !withControl) return false;
    if (this.choices !== null && this.chosen >= 0 && !withControl) return this.take(this.chosen);
    this.close();
    this.run();
    return true;
  }

  async lookUp() {
    const asked = ++this.asked;
    const { value, selectionStart, selectionEnd } = this.box;
    if (document.activeElement !== this.box || selectionStart !== selectionEnd) return;
    let found;
    try {
      found = await completions(value, selectionStart);
    } catch {
      // The query itself will tell what is wrong.
      return this.close();
    }
    // An answer that comes after further typing is of no use.
    if (asked !== this.asked || value !== this.box.value) return;
    if (found.items.length === 0) this.close();
    else this.open(found);
  }

  showHistory() {
    const queries = this.history();
    if (queries.length === 0) {
      speak("no query was run yet");
      return;
    }
    this.box.focus();
    const items = queries.map((text) => ({ text, insert: text, kind: "query", note: "" }));
    this.open({ items, start: 0, end: this.text.length, isHistory: true });
    byId("history").setAttribute("aria-expanded", "true");
  }

  open(choices) {
    this.choices = choices;
    // Enter runs the query until an item is chosen, except in the history.
    this.chosen = choices.isHistory ? 0 : -1;
    const rows = choices.items.map((item, index) =>
      make(
        "li",
        { id: `choice-${index}`, role: "option", "data-index": index, "aria-selected": "false" },
        make("span", { className: "text" }, item.text),
        make("span", { className: "kind" }, item.note || item.kind),
      ),
    );
    fill(this.list, rows);
    this.list.classList.toggle("whole", choices.isHistory === true);
    this.list.hidden = false;
    this.place(choices.start);
    this.box.setAttribute("aria-expanded", "true");
    this.show();
  }

  close() {
    this.asked += 1;
    if (this.choices === null) return;
    this.choices = null;
    this.list.hidden = true;
    this.box.setAttribute("aria-expanded", "false");
    this.box.removeAttribute("aria-activedescendant");
    byId("history").setAttribute("aria-expanded", "false");
  }

  choose(by) {
    const number = this.choices.items.length;
    this.chosen = this.chosen < 0 && by < 0 ? number - 1 : (this.chosen + by + number) % number;
    this.show();
  }

  /** Shows which item is chosen. */
  show() {
    for (const [index, row] of [...this.list.children].entries()) {
      row.setAttribute("aria-selected", String(index === this.chosen));
    }
    if (this.chosen < 0) return this.box.removeAttribute("aria-activedescendant");
    this.box.setAttribute("aria-activedescendant", `choice-${this.chosen}`);
    this.list.children[this.chosen].scrollIntoView({ block: "nearest" });
  }

  /** Puts the list below the place that it completes. */
  place(index) {
    const range = document.createRange();
    let left = index;
    for (const span of this.pre.childNodes) {
      const length = span.textContent.length;
      if (left <= length && span.firstChild) {
        range.setStart(span.firstChild, Math.min(left, span.firstChild.length));
        break;
      }
      left -= length;
    }
    const at = range.getBoundingClientRect();
    const around = this.pre.getBoundingClientRect();
    const isKnown = at.height > 0;
    this.list.style.left = `${isKnown ? Math.min(at.left - around.left, around.width * 0.6) : 12}px`;
    this.list.style.top = `${isKnown ? at.bottom - around.top + 6 : around.height}px`;
  }

  take(index) {
    const { items, start, end, isHistory } = this.choices;
    const { insert } = items[index];
    this.box.focus();
    this.box.setSelectionRange(start, end);
    // The browser's own command keeps undo.
    if (!document.execCommand("insertText", false, insert)) this.box.setRangeText(insert, start, end, "end");
    this.close();
    this.paint();
    if (isHistory) this.run();
    // Labels and values follow what was just taken.
    else if (insert.endsWith("(")) this.lookUpSoon();
  }

  /** Draws the text in colours, with the fault. */
  paint() {
    const text = this.text;
    const spans = coloured(text).map((token) => make("span", { className: token.colour }, token.text));
    fill(this.pre, spans);
    if (this.fault !== null) this.paintFault(text);
    // A line feed at the end takes a line only if something follows.
    this.pre.append("\u200b");
    this.box.style.height = "";
    this.box.style.height = `${this.box.scrollHeight}px`;
  }

  paintFault(text) {
    const all = tokens(text);
    const found = all.findIndex((token) => token.end > this.fault && token.kind !== "space");
    if (found < 0) this.pre.append(make("span", { className: "fault-place" }, " "));
    else this.pre.children[found].classList.add("fault-place");
  }
}

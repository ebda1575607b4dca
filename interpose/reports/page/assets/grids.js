// Tables: sorted by a click on a head, searched by a word; and the tabs. Texts are only ever set as texts.
"use strict";

const made = (name, text, attributes) => {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  return element;
};

function valueOf(row, place) {
  const cell = row.cells[place];
  const value = cell.dataset.v;
  return value === undefined ? cell.textContent : Number(value);
}

function compared(a, b) {
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
  return typeof a === "number" ? 1 : -1; // cells without a number are less than any
}

function sortBy(table, place) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const isNumber = heads[place].classList.contains("n");
  const was = heads[place].getAttribute("aria-sort");
  const up = was ? was === "descending" : !isNumber;
  rows.sort((a, b) => (up ? 1 : -1) * compared(valueOf(a, place), valueOf(b, place)));
  body.append(...rows);
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (head.hasAttribute("data-unsorted") || !head.textContent) return;
    const button = made("button", head.textContent, { type: "button" });
    button.addEventListener("click", () => sortBy(table, place));
    head.replaceChildren(button);
  });
}

function makeSearchable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 12) return;
  const label = made("label", "Search ");
  const input = made("input", "", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "all of these words" });
  const told = made("output", "", { "aria-live": "polite" });
  label.append(input);
  const tools = made("div", "", { class: "tools" });
  tools.append(label, told);
  table.parentElement.before(tools);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown++;
    }
    told.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}

function makeTabs(panels) {
  const list = made("div", "", { class: "tabs", role: "tablist", "aria-label": "Tables of calls" });
  const pages = [...panels.children];
  const tabs = pages.map((page) => made("button", page.dataset.title, { type: "button", role: "tab", "aria-controls": page.id }));
  const choose = (place) => {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === place));
      tab.tabIndex = at === place ? 0 : -1;
      pages[at].hidden = at !== place;
    });
  };
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => choose(place));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (place + step + tabs.length) % tabs.length;
      choose(next);
      tabs[next].focus();
    });
  });
  pages.forEach((page) => page.setAttribute("role", "tabpanel"));
  list.append(...tabs);
  panels.before(list);
  panels.classList.add("tabbed");
  choose(0);
}

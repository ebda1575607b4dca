// What happens when the page is there: tables, tabs, the time-line, links to lines, the menu and the theme.
"use strict";

// Show a line of the sources: its file is unfolded, and the row has the focus.
function showLine(name) {
  const row = document.getElementById(name);
  if (!row) return;
  row.closest("details").open = true;
  history.replaceState(null, "", `#${name}`);
  for (const each of document.querySelectorAll(".shown")) each.classList.remove("shown");
  row.classList.add("shown");
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
}

(() => {
  for (const table of document.querySelectorAll("table[data-grid]")) {
    makeSortable(table);
    makeSearchable(table);
  }
  document.querySelectorAll(".panels").forEach(makeTabs);
  for (const listing of document.querySelectorAll(".listing")) {
    const showHottest = () => {
      const row = listing.querySelector(".shown") || listing.querySelector(".hottest");
      if (row) listing.scrollTop = Math.max(row.offsetTop - listing.clientHeight / 3, 0);
    };
    listing.parentElement.addEventListener("toggle", showHottest);
    showHottest();
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#line-"]');
    if (!link) return;
    event.preventDefault();
    showLine(link.hash.slice(1));
  });
  const timeline = new Timeline(JSON.parse(document.getElementById("timeline-data").textContent));

  const menu = document.getElementById("menu");
  const sections = document.getElementById("sections");
  const fold = (folded) => {
    sections.classList.toggle("folded", folded);
    menu.setAttribute("aria-expanded", String(!folded));
  };
  menu.hidden = false;
  fold(true);
  menu.addEventListener("click", () => fold(!sections.classList.contains("folded")));
  sections.addEventListener("click", () => fold(true));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && sections.contains(document.activeElement)) menu.focus();
    if (event.key === "Escape") fold(true);
  });

  const THEMES = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  let chosen = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    button.textContent = `Theme: ${THEMES[chosen]}`;
    if (chosen) document.documentElement.dataset.theme = THEMES[chosen];
    else delete document.documentElement.dataset.theme;
    timeline.paint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.paint());
})();

// What happens when the page is there: tables, tabs, the time-line and the theme.
"use strict";

(() => {
  for (const table of document.querySelectorAll("table[data-grid]")) {
    makeSortable(table);
    makeSearchable(table);
  }
  document.querySelectorAll(".panels").forEach(makeTabs);
  for (const listing of document.querySelectorAll(".listing")) {
    const showHottest = () => {
      const row = listing.querySelector(".hottest");
      if (row) listing.scrollTop = Math.max(row.offsetTop - listing.clientHeight / 3, 0);
    };
    listing.parentElement.addEventListener("toggle", showHottest);
    showHottest();
  }
  const timeline = new Timeline(JSON.parse(document.getElementById("timeline-data").textContent));

  const THEMES = ["as the system", "light", "dark"];
  const button = document.getElementById("theme");
  let chosen = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    button.textContent = `theme: ${THEMES[chosen]}`;
    if (chosen) document.documentElement.dataset.theme = THEMES[chosen];
    else delete document.documentElement.dataset.theme;
    timeline.paint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.paint());
})();

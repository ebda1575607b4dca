"use strict";
// Zoom and search of a flame graph whose frames are in the page; without this script it is there all the same.
(() => {
  const LETTER = 6.7;
  const drawing = document.querySelector("svg.flame"), height = drawing.viewBox.baseVal.height;
  const graph = document.getElementById("graph"), told = document.getElementById("told");
  const frames = [...graph.querySelectorAll(".frame")].map(element => ({
    element, box: element.querySelector("rect"), title: element.querySelector("title").textContent,
    text: element.querySelector("text"), name: element.dataset.n,
    start: Number(element.dataset.x), width: Number(element.dataset.w), depth: Number(element.dataset.d),
  }));
  const whole = frames[0];
  let shown = whole, chosen = null, page = 1200;

  function fit(frame, x, width) {
    frame.box.setAttribute("x", x.toFixed(2));
    frame.box.setAttribute("width", width.toFixed(2));
    const room = width > 24 ? Math.floor((width - 5) / LETTER) : 0;
    if (room && !frame.text) {
      frame.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      frame.text.setAttribute("y", Number(frame.box.getAttribute("y")) + 12);
      frame.element.append(frame.text);
    }
    if (!frame.text) return;
    frame.text.textContent = frame.name.length > room ? (room ? frame.name.slice(0, room - 1) + "\u2026" : "") : frame.name;
    frame.text.setAttribute("x", (x + 3).toFixed(2));
  }

  function show(target) {
    shown = target;
    const end = target.start + target.width;
    for (const frame of frames) {
      const isAbove = frame.depth < target.depth && frame.start <= target.start && frame.start + frame.width >= end;
      const isWithin = frame.depth >= target.depth && frame.start >= target.start && frame.start + frame.width <= end;
      frame.element.classList.toggle("hidden", !isAbove && !isWithin);
      if (isAbove) fit(frame, 0, page);
      if (isWithin) fit(frame, page * (frame.start - target.start) / target.width, page * frame.width / target.width);
    }
    told.textContent = target === whole ? "" : target.title;
  }

  // The drawing as wide as there is room, with the names that then fit.
  function widen() {
    page = graph.clientWidth;
    drawing.setAttribute("width", page);
    drawing.setAttribute("viewBox", `0 0 ${page} ${height}`);
    show(shown);
  }

  function choose(frame) {
    if (!frame) return;
    if (chosen) chosen.element.classList.remove("chosen");
    chosen = frame;
    chosen.element.classList.add("chosen");
    told.textContent = chosen.title;
  }

  // The time of what was found: a frame within one that was found counts once.
  function search(words) {
    let found = 0, until = -1;
    const wanted = words.toLowerCase();
    const hits = frames.filter(frame => {
      const hit = wanted !== "" && frame.title.toLowerCase().includes(wanted);
      frame.element.classList.toggle("found", hit);
      return hit;
    });
    for (const frame of hits.sort((a, b) => a.start - b.start || b.width - a.width)) {
      const end = frame.start + frame.width;
      found += Math.max(end - Math.max(frame.start, until), 0);
      until = Math.max(until, end);
    }
    told.textContent = wanted === "" ? "" : `${hits.length} frames, ${(100 * found / whole.width).toFixed(1)} %`;
  }

  function beside(step) {
    const row = frames.filter(frame => frame.depth === chosen.depth && !frame.element.classList.contains("hidden"));
    row.sort((a, b) => a.start - b.start);
    return row[row.indexOf(chosen) + step];
  }

  function above() {
    return frames.find(frame => frame.depth === chosen.depth - 1 && frame.start <= chosen.start &&
      frame.start + frame.width >= chosen.start + chosen.width);
  }

  function below() {
    const end = chosen.start + chosen.width;
    return frames.find(frame => frame.depth === chosen.depth + 1 && frame.start >= chosen.start && frame.start < end);
  }

  const moves = {ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowUp: above, ArrowDown: below};
  graph.addEventListener("keydown", event => {
    if (event.key in moves) {
      choose(chosen ? moves[event.key]() : shown);
      event.preventDefault();
    } else if (event.key === "Enter" && chosen) {
      show(chosen);
    } else if (event.key === "Escape") {
      show(whole);
    }
  });
  const frameOf = event => {
    const element = event.target.closest(".frame");
    return frames.find(each => each.element === element);
  };
  graph.addEventListener("pointerover", event => {
    const frame = frameOf(event);
    if (frame) told.textContent = frame.title;
  });
  graph.addEventListener("click", event => {
    const frame = frameOf(event);
    if (frame && frame.width) {
      choose(frame);
      show(frame);
    }
  });
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(widen);
  });
  widen();
  document.getElementById("all").addEventListener("click", () => show(whole));
  document.getElementById("search").addEventListener("input", event => search(event.target.value));
})();

// The time-line: a lane for each thread, drawn on a canvas, and above it how many threads were in each kind of call.
"use strict";

const KINDS = ["db", "file", "net", "process", "screen", "sync", "gil", "sleep", "logic", "system",
  "import", "running", "processor", "unexplained"];
// What the legend and the tips call a kind whose own name says too little.
const TITLES = { gil: "interpreter lock", running: "code running", processor: "wait for CPU",
  unexplained: "unexplained wait" };
const LANE = 22;
const GAP = 5;
const TOP = 20;
const SECOND = 1e9;
const CLICK = 4; // pixels that a pointer may move and still click

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function timeText(ns) {
  const units = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
  const [unit, size] = units.find(([, each]) => Math.abs(ns) >= each) || units[3];
  const number = ns / size;
  return `${number.toFixed(unit === "ns" ? 0 : number < 10 ? 2 : number < 100 ? 1 : 0)} ${unit}`;
}

const titleOf = (kind) => TITLES[kind] || kind;

class Timeline {
  constructor(data) {
    this.data = data;
    this.whole = Math.max(data.slice * data.slices, 1);
    this.from = 0;
    this.to = Math.max(...data.lanes.map((lane) => lane.end), 1);
    this.end = this.to;
    this.lanes = data.lanes.map((lane) => ({
      ...lane,
      kinds: Object.fromEntries(Object.entries(lane.kinds).map(([kind, text]) => [kind, bytesOf(text)])),
    }));
    this.kinds = this.orderOf();
    this.byLane = this.lanes.map((_, at) => data.calls.filter((call) => call[0] === at));
    this.canvas = document.getElementById("lanes");
    this.tip = document.getElementById("tip");
    this.told = document.getElementById("range");
    this.chosen = document.getElementById("chosen");
    this.held = new Map();
    this.chart = null;
    this.listen();
    this.paint();
  }

  orderOf() {
    const found = new Set(this.lanes.flatMap((lane) => Object.keys(lane.kinds)));
    const known = KINDS.filter((kind) => found.has(kind));
    const others = [...found].filter((kind) => !KINDS.includes(kind) && kind !== "idle").sort();
    return [...known, ...others, ...(found.has("idle") ? ["idle"] : [])];
  }

  colour(kind) {
    const known = KINDS.includes(kind) || kind === "idle";
    return getComputedStyle(document.documentElement).getPropertyValue(`--${known ? kind : "other"}`).trim();
  }

  paint() {
    this.colours = Object.fromEntries(this.kinds.map((kind) => [kind, this.colour(kind)]));
    const style = getComputedStyle(document.documentElement);
    this.ink = style.getPropertyValue("--ink").trim();
    this.faint = style.getPropertyValue("--faint").trim();
    this.line = style.getPropertyValue("--line").trim();
    this.stripe = style.getPropertyValue("--stripe").trim();
    this.panel = style.getPropertyValue("--panel").trim();
    this.showLegend();
    this.showActivity();
    this.draw();
  }

  showLegend() {
    const legend = document.getElementById("legend");
    const shown = this.kinds.map((kind) => {
      const known = KINDS.includes(kind) || kind === "idle";
      return made("span", titleOf(kind), { class: `k-${known ? kind : "other"}` });
    });
    shown.push(made("span", "CPU used", { class: "cpu-used" }), made("span", "", { class: "at" }));
    legend.replaceChildren(...shown);
  }

  tell(chart) {
    const slot = chart.cursor.idx;
    const names = [...this.kinds.map(titleOf), "CPU used"];
    const values = [...this.sums, this.data.cpu];
    const spans = document.getElementById("legend").children;
    names.forEach((name, at) => {
      const value = slot === null || slot === undefined ? null : values[at][slot];
      spans[at].textContent = value === null ? name : `${name} ${value.toFixed(2)}`;
    });
    const at = slot === null || slot === undefined ? "" : `threads at ${timeText(chart.data[0][slot] * SECOND)}`;
    spans[names.length].textContent = at;
  }

  showActivity() {
    const place = document.getElementById("activity");
    const { slice, slices, cpu } = this.data;
    if (this.chart) this.chart.destroy();
    const xs = Array.from({ length: slices }, (_, at) => ((at + 0.5) * slice) / SECOND);
    this.sums = this.kinds.map((kind) => {
      const sum = new Float64Array(slices);
      for (const lane of this.lanes) lane.kinds[kind]?.forEach((part, at) => (sum[at] += part / 255));
      return sum;
    });
    const stacked = [];
    this.sums.forEach((sum, at) => stacked.push(at ? sum.map((part, slot) => part + stacked[at - 1][slot]) : sum));
    const series = this.kinds.map((kind) => ({
      label: kind,
      width: 0,
      fill: this.colours[kind],
      points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }),
    }));
    const axis = { stroke: this.faint, grid: { stroke: this.line, width: 1 }, ticks: { stroke: this.line }, font: "11px system-ui" };
    const options = {
      width: this.canvas.parentElement.clientWidth,
      height: 150,
      padding: [10, 0, 0, 0],
      ms: 1,
      legend: { show: false },
      cursor: { y: false, points: { show: false } },
      scales: { x: { time: false }, y: { range: (_, least, most) => [0, Math.max(most, 1)] } },
      axes: [
        { ...axis, size: 28, values: (chart, ticks) => this.labels(chart, ticks) },
        { ...axis, size: this.leftOf(this.canvas.parentElement.clientWidth) - 18, label: "threads", labelSize: 18, labelFont: "11px system-ui" },
      ],
      series: [
        {},
        ...series.reverse(),
        { label: "CPU used", stroke: this.ink, width: 1.2, points: { show: false }, spanGaps: false },
      ],
      hooks: { setScale: [(chart, key) => key === "x" && this.follow(chart)], setCursor: [(chart) => this.tell(chart)] },
    };
    this.isFollowing = true;
    this.chart = new uPlot(options, [xs, ...stacked.reverse(), cpu], place);
    this.chart.setScale("x", { min: this.from / SECOND, max: this.to / SECOND });
    this.isFollowing = false;
  }

  // The times below the chart; one that the edge would cut is left out.
  labels(chart, ticks) {
    const { min, max } = chart.scales.x;
    const perPixel = (max - min) / Math.max(chart.width - this.leftOf(chart.width), 1);
    return ticks.map((tick) => (tick > max - 28 * perPixel ? null : timeText(tick * SECOND)));
  }

  follow(chart) {
    if (this.isFollowing || this.isLeading) return;
    const { min, max } = chart.scales.x;
    if (min === null) return;
    this.isFollowing = true;
    this.look(min * SECOND, max * SECOND);
    this.isFollowing = false;
  }

  look(from, to) {
    const least = Math.max(this.end / 5e6, 200);
    const length = Math.min(Math.max(to - from, least), this.end);
    this.from = Math.min(Math.max(from, 0), this.end - length);
    this.to = this.from + length;
    if (!this.isFollowing && this.chart) {
      this.isLeading = true;
      this.chart.setScale("x", { min: this.from / SECOND, max: this.to / SECOND });
      this.isLeading = false;
    }
    this.draw();
  }

  leftOf(width) {
    return Math.round(Math.min(190, width / 4));
  }

  x(ns) {
    return this.left + ((ns - this.from) / (this.to - this.from)) * (this.width - this.left);
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.left = this.leftOf(this.width);
    this.height = TOP + this.lanes.length * (LANE + GAP) + GAP;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.height = `${this.height}px`;
    const paper = this.canvas.getContext("2d");
    paper.scale(ratio, ratio);
    paper.font = "11px system-ui, sans-serif";
    this.drawTimes(paper);
    this.lanes.forEach((lane, at) => this.drawLane(paper, lane, at));
    this.told.textContent = `${timeText(this.from)} to ${timeText(this.to)} of ${timeText(this.end)}`;
  }

  drawTimes(paper) {
    const rough = (this.to - this.from) / Math.max((this.width - this.left) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      paper.fillStyle = this.line;
      paper.fillRect(x, TOP - 4, 1, this.height);
      paper.fillStyle = this.faint;
      const text = timeText(at);
      if (x + 3 + paper.measureText(text).width <= this.width) paper.fillText(text, x + 3, 12);
    }
  }

  drawLane(paper, lane, at) {
    const top = TOP + at * (LANE + GAP);
    const begin = Math.max(this.x(lane.start), this.left);
    const end = Math.min(this.x(lane.end), this.width);
    paper.fillStyle = this.stripe;
    if (end > begin) paper.fillRect(begin, top, end - begin, LANE);
    this.drawSlices(paper, lane, top);
    this.drawCalls(paper, at, top);
    paper.fillStyle = this.panel;
    paper.fillRect(0, top, this.left, LANE);
    paper.fillStyle = this.ink;
    paper.fillText(this.fitted(paper, lane.name), 8, top + 15);
  }

  fitted(paper, text) {
    let shown = text;
    while (shown.length > 4 && paper.measureText(shown).width > this.left - 16) shown = `${shown.slice(0, -2)}…`;
    return shown;
  }

  drawSlices(paper, lane, top) {
    const { slice, slices } = this.data;
    const first = Math.max(Math.floor(this.from / slice), 0);
    const last = Math.min(Math.ceil(this.to / slice), slices);
    for (let at = first; at < last; at++) {
      const x = Math.max(this.x(at * slice), this.left);
      const width = Math.max(this.x((at + 1) * slice) - x, 0);
      let bottom = top + LANE;
      for (const kind of this.kinds) {
        const part = lane.kinds[kind]?.[at];
        if (!part) continue;
        const height = Math.min((part / 255) * LANE, bottom - top);
        paper.fillStyle = this.colours[kind];
        paper.fillRect(x, bottom - height, width + 0.3, height);
        bottom -= height;
      }
    }
  }

  drawCalls(paper, at, top) {
    const perPixel = (this.to - this.from) / (this.width - this.left);
    for (const call of this.byLane[at]) {
      const [, start, wall, , kind] = call;
      if (wall < perPixel * 3 || start > this.to || start + wall < this.from) continue;
      const x = Math.max(this.x(start), this.left);
      const width = Math.min(this.x(start + wall), this.width) - x;
      paper.fillStyle = this.colours[this.data.texts[kind]] || this.faint;
      paper.fillRect(x, top, width, LANE);
      paper.strokeStyle = this.panel;
      paper.lineWidth = 1;
      paper.strokeRect(x + 0.5, top + 0.5, Math.max(width - 1, 1), LANE - 1);
    }
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", (event) => this.onUp(event));
    canvas.addEventListener("pointercancel", (event) => this.held.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", () => this.look(0, this.end));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    const zooms = document.getElementById("zooms");
    zooms.hidden = false;
    zooms.addEventListener("click", (event) => {
      const factor = event.target.dataset.zoom;
      if (factor === "0") this.look(0, this.end);
      else if (factor) this.zoom((this.from + this.to) / 2, Number(factor));
    });
    let waiting = 0;
    window.addEventListener("resize", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => {
        this.chart.setSize({ width: this.canvas.parentElement.clientWidth, height: 150 });
        this.draw();
      });
    });
  }

  at(event) {
    const share = (event.offsetX - this.left) / (this.width - this.left);
    return this.from + share * (this.to - this.from);
  }

  zoom(middle, factor) {
    const from = middle - (middle - this.from) * factor;
    this.look(from, from + (this.to - this.from) * factor);
  }

  onWheel(event) {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.move((event.deltaX || event.deltaY) / 800);
    } else if (event.ctrlKey || event.metaKey || document.activeElement === this.canvas) {
      event.preventDefault();
      this.zoom(this.at(event), event.deltaY > 0 ? 1.25 : 0.8);
    }
  }

  move(share) {
    const step = share * (this.to - this.from);
    this.look(this.from + step, this.to + step);
  }

  // One pointer that is down drags, two pinch.
  onDown(event) {
    this.held.set(event.pointerId, event.offsetX);
    this.began = { from: this.from, to: this.to, at: [...this.held.values()], isClick: this.held.size === 1 };
    this.canvas.setPointerCapture(event.pointerId);
    this.showTip(event);
  }

  onMove(event) {
    if (this.held.has(event.pointerId)) {
      this.held.set(event.pointerId, event.offsetX);
      if (this.held.size === 1) this.drag();
      else this.pinch();
    }
    this.showTip(event);
  }

  drag() {
    const [x] = this.held.values();
    const moved = this.began.at[0] - x;
    if (this.began.isClick && Math.abs(moved) < CLICK) return;
    this.began.isClick = false;
    const step = (moved / (this.width - this.left)) * (this.began.to - this.began.from);
    this.look(this.began.from + step, this.began.to + step);
  }

  pinch() {
    const { from, to, at } = this.began;
    const [a, b] = this.held.values();
    const perPixel = (to - from) / (this.width - this.left);
    const factor = Math.max(Math.abs(at[0] - at[1]), CLICK) / Math.max(Math.abs(a - b), CLICK);
    const middle = from + ((at[0] + at[1]) / 2 - this.left) * perPixel;
    const begin = middle - ((a + b) / 2 - this.left) * perPixel * factor;
    this.look(begin, begin + (to - from) * factor);
  }

  onUp(event) {
    this.held.delete(event.pointerId);
    if (this.held.size) {
      this.began = { from: this.from, to: this.to, at: [...this.held.values()], isClick: false };
    } else if (this.began?.isClick) {
      const lane = Math.floor((event.offsetY - TOP) / (LANE + GAP));
      const call = this.lanes[lane] && event.offsetX >= this.left && this.callAt(lane, this.at(event));
      this.choose(call);
      if (call && event.pointerType !== "touch") showLine(this.data.texts[call[8]]);
    }
  }

  // Tell the call that was clicked below the lanes, with a link to its line: a finger does not jump there by a tap.
  choose(call) {
    const texts = this.data.texts;
    this.chosen.replaceChildren();
    if (!call) return;
    this.chosen.append(`${this.callHead(call)} `);
    if (texts[call[8]]) this.chosen.append(made("a", texts[call[6]], { href: `#${texts[call[8]]}` }));
    else this.chosen.append(texts[call[6]]);
    if (texts[call[7]]) this.chosen.append(made("code", texts[call[7]]));
  }

  onKey(event) {
    const middle = (this.from + this.to) / 2;
    const acts = {
      "+": () => this.zoom(middle, 0.7),
      "=": () => this.zoom(middle, 0.7),
      "-": () => this.zoom(middle, 1 / 0.7),
      ArrowLeft: () => this.move(-0.2),
      ArrowRight: () => this.move(0.2),
      Home: () => this.move(-1),
      End: () => this.move(1),
      0: () => this.look(0, this.end),
      Escape: () => this.look(0, this.end),
    };
    if (acts[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      acts[event.key]();
    }
  }

  showTip(event) {
    const at = Math.floor((event.offsetY - TOP) / (LANE + GAP));
    const lane = this.lanes[at];
    const ns = this.at(event);
    const isName = event.offsetX < this.left;
    const call = lane && !isName ? this.callAt(at, ns) : null;
    this.canvas.style.cursor = call && this.data.texts[call[8]] ? "pointer" : "";
    this.tip.hidden = !lane || (!isName && (ns < lane.start || ns > lane.end));
    if (this.tip.hidden) return;
    this.tip.textContent = isName ? lane.about : call ? this.callText(call) : this.sliceText(lane, ns);
    const room = this.width - this.tip.offsetWidth - 8;
    this.tip.style.left = `${Math.min(event.offsetX + 12, Math.max(room, 0))}px`;
    const isLow = event.offsetY + 16 + this.tip.offsetHeight > this.height;
    this.tip.style.top = `${Math.max(isLow ? event.offsetY - this.tip.offsetHeight - 8 : event.offsetY + 16, 0)}px`;
  }

  callAt(at, ns) {
    const perPixel = (this.to - this.from) / (this.width - this.left);
    const found = this.byLane[at].filter(([, start, wall]) => wall >= perPixel * 3 && start <= ns && ns <= start + wall);
    return found.at(-1);
  }

  callHead([, start, wall, cpu, , name]) {
    return `${this.data.texts[name]} · ${timeText(wall)}, CPU ${timeText(cpu)}, at ${timeText(start)}`;
  }

  callText(call) {
    const texts = this.data.texts;
    return [this.callHead(call), texts[call[6]], texts[call[7]]].filter(Boolean).join("\n");
  }

  sliceText(lane, ns) {
    const slot = Math.min(Math.floor(ns / this.data.slice), this.data.slices - 1);
    const parts = this.kinds
      .map((kind) => [kind, lane.kinds[kind]?.[slot] || 0])
      .filter(([, part]) => part)
      .map(([kind, part]) => `${titleOf(kind)} ${((100 * part) / 255).toFixed(0)} %`);
    return [`${timeText(slot * this.data.slice)}, for ${timeText(this.data.slice)}`, parts.join(", ") || "no recorded call"].join("\n");
  }
}

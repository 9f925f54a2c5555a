"use strict";
// Draws the page's plots and table from the rows in #data.
const { columns, rows, axes } = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b4f9e", "#8c6d31", "#666666", "#b2182b"];
const at = Object.fromEntries(columns.map((name, index) => [name, index]));
const cells = (name) => rows.map((row) => row[at[name]]);
const varies = (name) => new Set(cells(name).filter((cell) => cell !== null)).size > 1;
const isNumber = (name) => cells(name).every((cell) => cell === null || typeof cell === "number") && cells(name).some((cell) => cell !== null);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function show(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Math.abs(value) < 100 ? Number(value.toPrecision(6)) : Number(value.toFixed(3)));
}

// A number on an axis: 4G for 4e9.
function short(value) {
  if (typeof value !== "number") return show(value);
  const [by, suffix] = [[1e12, "T"], [1e9, "G"], [1e6, "M"]].find(([each]) => Math.abs(value) >= each) ?? [1, ""];
  return (by === 1 ? show(value) : String(Number((value / by).toPrecision(5)))) + suffix;
}

// A tip beside the pointer, and a title for users without a pointer.
function tell(node, text) {
  const tip = byId("tip");
  node.setAttribute("tabindex", "0");
  node.setAttribute("aria-label", text);
  const appear = () => {
    const box = node.getBoundingClientRect();
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${box.right + window.scrollX + 8}px`;
    tip.style.top = `${box.top + window.scrollY + 8}px`;
  };
  for (const name of ["mouseenter", "focus"]) node.addEventListener(name, appear);
  for (const name of ["mouseleave", "blur"]) node.addEventListener(name, () => { tip.hidden = true; });
}

// Values of x that are no numbers have equidistant places, in order.
function scale(values, log, begin, end) {
  if (values.some((value) => typeof value !== "number")) {
    const places = [...new Set(values)];
    const step = (end - begin) / Math.max(places.length, 1);
    return { of: (value) => begin + (places.indexOf(value) + 0.5) * step, ticks: places };
  }
  const f = log ? Math.log2 : (value) => value;
  let [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  if (!log && low > 0 && low < high / 2) low = 0;
  const width = f(high) - f(low) || 1;
  const of = (value) => begin + ((f(value) - f(low)) / width) * (end - begin);
  let ticks = [];
  if (log) {
    const step = Math.max(1, Math.ceil(width / 8));
    for (let power = Math.ceil(f(low) - 1e-9); power <= f(high) + 1e-9; power += step) ticks.push(2 ** power);
    if (ticks.length < 2) ticks = [low, high];
  } else {
    const step = 10 ** Math.floor(Math.log10(width / 4));
    const wide = [1, 2, 5, 10].map((by) => by * step).find((each) => width / each <= 8);
    for (let value = Math.ceil(low / wide) * wide; value <= high + wide * 1e-9; value += wide) ticks.push(Number(value.toPrecision(12)));
  }
  return { of, ticks };
}

function legend(names, parent) {
  const box = document.createElement("p");
  box.className = "legend";
  names.forEach((name, index) => {
    const item = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = COLOURS[index % COLOURS.length];
    item.append(mark, name);
    box.append(item);
  });
  parent.append(box);
}

// Whether rows that are equal in one column are equal in another.
function decides(one, other) {
  const found = new Map();
  return rows.every((row) => {
    const [key, value] = [row[at[one]], row[at[other]]];
    if (!found.has(key)) found.set(key, value);
    return value === null || found.get(key) === value;
  });
}

// Columns that distinguish rows. Of several equivalent ones only the first.
const apart = columns
  .filter((name) => (axes.includes(name) || ["nic", "mode", "size_bytes"].includes(name)) && varies(name))
  .filter((name, index, all) => !all.slice(0, index).some((other) => decides(other, name) && decides(name, other)));

function plot() {
  const x = byId("x").value, y = byId("y").value, box = byId("picture");
  const others = apart.filter((name) => !decides(x, name));
  const series = new Map();
  for (const row of rows) {
    const [left, up] = [row[at[x]], row[at[y]]];
    if (left === null || typeof up !== "number") continue;
    if (byId("logx").checked && typeof left === "number" && left <= 0) continue;
    if (byId("logy").checked && up <= 0) continue;
    const name = others.map((other) => `${other} ${show(row[at[other]])}`).join(", ") || y;
    if (!series.has(name)) series.set(name, []);
    series.get(name).push({ left, up });
  }
  box.replaceChildren();
  const all = [...series.values()].flat();
  if (all.length === 0) { box.textContent = "There is nothing to draw."; return; }
  const [wide, high] = [900, 420];
  const svg = element("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": `${y} over ${x}` }, box);
  const across = scale(all.map((point) => point.left), byId("logx").checked, 98, wide - 28);
  const upward = scale(all.map((point) => point.up), byId("logy").checked, high - 56, 26);
  for (const tick of upward.ticks) {
    element("line", { class: "grid", x1: 90, x2: wide - 20, y1: upward.of(tick), y2: upward.of(tick) }, svg);
    element("text", { x: 84, y: upward.of(tick) + 4, "text-anchor": "end" }, svg, short(tick));
  }
  for (const tick of across.ticks) element("text", { x: across.of(tick), y: high - 32, "text-anchor": "middle" }, svg, short(tick));
  element("text", { x: wide / 2, y: high - 8, "text-anchor": "middle" }, svg, x);
  element("text", { x: 14, y: high / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${high / 2})` }, svg, y);
  [...series].forEach(([name, points], index) => {
    const colour = COLOURS[index % COLOURS.length];
    if (points.every((point) => typeof point.left === "number")) points.sort((a, b) => a.left - b.left);
    const path = points.map((point) => `${across.of(point.left)},${upward.of(point.up)}`).join(" ");
    element("polyline", { class: "line", points: path, stroke: colour }, svg);
    for (const point of points) {
      const mark = element("circle", { cx: across.of(point.left), cy: upward.of(point.up), r: 5, fill: colour }, svg);
      tell(mark, `${name}\n${x} ${show(point.left)}\n${y} ${show(point.up)}`);
    }
  });
  legend([...series.keys()], box);
}

const stages = columns.filter((name) => /^stages_.*_ns$/.test(name));

// A bar per row with stages.
function bars() {
  const box = byId("bars"), own = rows.filter((row) => stages.some((name) => row[at[name]] > 0)).slice(0, 60);
  if (own.length === 0) return;
  byId("stages").hidden = false;
  const sum = (row) => stages.reduce((total, name) => total + (row[at[name]] || 0), 0);
  const most = Math.max(...own.map(sum)), left = 330, wide = 900;
  const svg = element("svg", { viewBox: `0 0 ${wide} ${own.length * 24 + 4}`, width: wide, height: own.length * 24 + 4, role: "img", "aria-label": "time by stage" }, box);
  own.forEach((row, line) => {
    const name = apart.map((other) => show(row[at[other]])).join(", ") || `point ${row[at.point]}`;
    element("text", { x: left - 8, y: line * 24 + 16, "text-anchor": "end" }, svg, name);
    let begin = left;
    stages.forEach((stage, index) => {
      const ns = row[at[stage]] || 0, width = (ns / most) * (wide - left - 10);
      if (ns === 0) return;
      const rect = element("rect", { class: "stage", x: begin, y: line * 24 + 3, width, height: 18, fill: COLOURS[index % COLOURS.length] }, svg);
      tell(rect, `${name}\n${stage.slice(7, -3).replaceAll("_", " ")} ${show(ns)} ns of ${show(sum(row))} ns`);
      begin += width;
    });
  });
  legend(stages.map((name) => name.slice(7, -3).replaceAll("_", " ")), box);
}

let order = null, falling = false;

function table() {
  const every = byId("all").checked;
  const main = columns.filter((name) => every || axes.includes(name) || ["point", "status"].includes(name) || (varies(name) && !stages.includes(name)));
  const shown = every ? main : main.slice(0, 16);
  const sorted = [...rows];
  if (order !== null) {
    const key = at[order];
    sorted.sort((a, b) => (a[key] === b[key] ? 0 : a[key] === null ? 1 : b[key] === null ? -1 : a[key] < b[key] === falling ? 1 : -1));
  }
  const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
  for (const name of shown) {
    const cell = document.createElement("th");
    cell.textContent = name + (order === name ? (falling ? " \u25be" : " \u25b4") : "");
    cell.addEventListener("click", () => { falling = order === name && !falling; order = name; table(); });
    head.append(cell);
  }
  for (const row of sorted) {
    const line = body.insertRow();
    if (row[at.status] === "failed") line.className = "failed";
    for (const name of shown) line.insertCell().textContent = show(row[at[name]]);
  }
  byId("table").replaceChildren(made);
}

// First the benchmark's main figure, along the axis with the most values.
const FIRST = ["mean_ns", "latency_ns", "half_round_trip_ns", "bandwidth_bytes_per_s", "messages_per_s", "goodput_bits_per_s", "max_finish_ns", "value"];

function begin() {
  const numbers = columns.filter((name) => isNumber(name) && !["point", ...axes].includes(name) && !stages.includes(name));
  const changing = numbers.filter(varies);
  const ys = changing.length ? changing : numbers;
  const xs = apart.length ? [...apart] : ["point"];
  for (const [id, names] of [["y", ys], ["x", xs]]) {
    for (const name of names) byId(id).append(new Option(name, name));
    byId(id).addEventListener("change", () => { logs(); plot(); });
  }
  byId("y").value = FIRST.find((name) => ys.includes(name)) ?? ys[0] ?? "";
  const count = (name) => new Set(cells(name)).size * (isNumber(name) ? 1000 : 1);
  byId("x").value = xs.reduce((best, name) => (count(name) > count(best) ? name : best), xs[0]);
  for (const id of ["logx", "logy"]) byId(id).addEventListener("change", plot);
  byId("all").addEventListener("change", table);
  if (ys.length === 0) byId("plot").hidden = true;
  else { logs(); plot(); }
  bars();
  table();
}

// Logarithmic if values span more than a factor of 30.
function logs() {
  for (const axis of ["x", "y"]) {
    const found = cells(byId(axis).value).filter((cell) => typeof cell === "number");
    const positive = found.length > 0 && found.every((cell) => cell > 0);
    byId(`log${axis}`).checked = positive && Math.max(...found) > 30 * Math.min(...found);
  }
}

begin();

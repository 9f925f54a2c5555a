"use strict";
// Shows the rows in #data: a plot by uPlot, bars of stages, and a table.
const { columns, rows, axes, labels } = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b4f9e", "#8c6d31", "#666666", "#b2182b"];
const at = Object.fromEntries(columns.map((name, index) => [name, index]));
const cells = (name) => rows.map((row) => row[at[name]]);
const varies = (name) => new Set(cells(name).filter((cell) => cell !== null)).size > 1;
const isNumber = (name) => cells(name).every((cell) => cell === null || typeof cell === "number") && cells(name).some((cell) => cell !== null);
const byId = (id) => document.getElementById(id);
const colour = (index) => COLOURS[index % COLOURS.length];

function show(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Math.abs(value) < 100 ? Number(value.toPrecision(6)) : Number(value.toFixed(3)));
}

// A number on an axis: 4G for 4e9; on an axis of sizes 4Ki for 4096.
function short(value, bySize) {
  const [base, suffixes] = bySize ? [1024, ["", "Ki", "Mi", "Gi", "Ti"]] : [1000, ["", "k", "M", "G", "T"]];
  const least = bySize ? base : 1e4;
  const power = Math.abs(value) < least ? 0 : Math.min(4, Math.floor(Math.log(Math.abs(value)) / Math.log(base) + 1e-9));
  return show(Number((value / base ** power).toPrecision(6))) + suffixes[power];
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

// A value in words: `size 8 bytes`. Cards and modes are names already.
function said(name, value) {
  const [, words, unit] = /^(.*?)(?: \((.*)\))?$/.exec(labels[name]);
  return ["nic", "mode"].includes(name) ? show(value) : `${words.toLowerCase()} ${show(value)}${unit ? ` ${unit}` : ""}`;
}

// Lines by name: the other columns that distinguish rows. Text on the x axis has equidistant places, in order.
function lines(x, y, texts) {
  const others = apart.filter((name) => !decides(x, name)), found = new Map();
  for (const row of rows) {
    const [left, up] = [row[at[x]], row[at[y]]];
    if (left === null || typeof up !== "number") continue;
    if ((byId("logx").checked && !texts && left <= 0) || (byId("logy").checked && up <= 0)) continue;
    const name = others.map((other) => said(other, row[at[other]])).join(", ") || labels[y];
    if (!found.has(name)) found.set(name, []);
    found.get(name).push([texts ? texts.indexOf(left) : left, up]);
  }
  return found;
}

// Points by x. Map.groupBy is not in browsers of before 2024.
function byPlace(points) {
  const places = new Map();
  for (const point of points) places.set(point[0], [...(places.get(point[0]) ?? []), point]);
  return places;
}

// The columns of uPlot: x ascending, each value as often as a line has it, and the values of each line there.
function aligned(found) {
  const most = new Map(), counted = [...found.values()].map(byPlace);
  for (const line of counted) for (const [left, points] of line) most.set(left, Math.max(most.get(left) ?? 0, points.length));
  const places = [...most].sort(([a], [b]) => a - b).flatMap(([left, count]) => Array.from({ length: count }, (_, turn) => [left, turn]));
  return [places.map(([left]) => left), ...counted.map((line) => places.map(([left, turn]) => line.get(left)?.[turn]?.[1] ?? null))];
}

function powersOfTwo(least, most) {
  const first = Math.ceil(Math.log2(least)), count = Math.floor(Math.log2(most)) - first + 1;
  return Array.from({ length: count }, (_, index) => 2 ** (first + index));
}

// Steps between ticks: 1, 2 and 5 times a power of ten.
const STEPS = Array.from({ length: 25 }, (_, power) => [1, 2, 5].map((by) => Number(`${by}e${power - 9}`))).flat();
let drawn = null;

function plot() {
  const x = byId("x").value, y = byId("y").value, box = byId("picture");
  const texts = isNumber(x) ? null : [...new Set(cells(x).filter((cell) => cell !== null))];
  const found = lines(x, y, texts), data = aligned(found);
  drawn?.destroy();
  box.replaceChildren();
  if (found.size === 0) { box.textContent = "There is nothing to draw."; return; }
  const scale = (log, base) => (log ? { distr: 3, log: base } : { distr: 1 });
  const [low, high] = [data[0][0], data[0].at(-1)];
  const bySize = /\(bytes\)$/.test(labels[x]), logx = byId("logx").checked && !texts;
  const margin = logx ? 0 : (high - low || 1) * 0.03, factor = logx ? 1.15 : 1;
  const across = { ...scale(logx, bySize ? 2 : 10), time: false, range: texts ? [-0.5, texts.length - 0.5] : [low / factor - margin, high * factor + margin] };
  const ticks = { incrs: STEPS, values: (_, splits) => splits.map((value) => (value === null ? "" : short(value, bySize))) };
  if (texts) Object.assign(ticks, { splits: () => texts.map((_, index) => index), values: () => texts });
  else if (logx && bySize) ticks.splits = (_, axis, least, most) => powersOfTwo(least, most);
  drawn = new uPlot({
    width: Math.min(900, box.clientWidth), height: 420,
    scales: { x: across, y: byId("logy").checked ? scale(true, 10) : { range: (_, least, most) => uPlot.rangeNum(least > 0 && least < most / 2 ? 0 : least, most, 0.05, true) } },
    axes: [{ label: labels[x], ...ticks }, { label: labels[y], size: 70, incrs: STEPS, values: (_, splits) => splits.map((value) => (value === null ? "" : short(value, false))) }],
    series: [
      { label: labels[x], value: (_, value) => (texts ? texts[value] : show(value)) ?? "" },
      ...[...found.keys()].map((label, index) => ({ label, stroke: colour(index), width: 2, spanGaps: true, points: { show: true, size: 8, fill: colour(index) }, value: (_, value) => show(value) })),
    ],
    legend: { markers: { fill: (_, index) => colour(index - 1) } }, focus: { alpha: 0.3 }, cursor: { focus: { prox: 20 }, drag: { x: false, y: false } },
  }, data, box);
}

const stages = columns.filter((name) => /^stages_.*_ns$/.test(name));
const stageName = (name) => name.slice(7, -3).replaceAll("_", " ");

function made(tag, parent, text = "", attributes = {}) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.textContent = text;
  parent.append(element);
  return element;
}

// A bar per row with stages.
function bars() {
  const box = byId("bars"), own = rows.filter((row) => stages.some((name) => row[at[name]] > 0)).slice(0, 60);
  if (own.length === 0) return;
  byId("stages").hidden = false;
  const sum = (row) => stages.reduce((total, name) => total + (row[at[name]] || 0), 0);
  const most = Math.max(...own.map(sum)), legend = made("p", box, "", { className: "legend" });
  stages.forEach((name, index) => { made("i", made("span", legend, stageName(name))).style.background = colour(index); });
  for (const row of own) {
    const name = apart.map((other) => said(other, row[at[other]])).join(", ") || `point ${row[at.point]}`;
    const bar = made("div", box, "", { className: "bar" });
    made("span", bar, name);
    const parts = made("div", bar);
    stages.forEach((stage, index) => {
      const ns = row[at[stage]] || 0;
      if (ns === 0) return;
      const part = made("i", parts, "", { title: `${stageName(stage)} ${show(ns)} ns of ${show(sum(row))} ns`, tabIndex: 0 });
      Object.assign(part.style, { width: `${(100 * ns) / most}%`, background: colour(index) });
    });
  }
}

let order = null, falling = false;

function table() {
  const every = byId("all").checked;
  const main = columns.filter((name) => every || axes.includes(name) || ["point", "status"].includes(name) || (varies(name) && !stages.includes(name)));
  const shown = every ? main : main.slice(0, 16), sorted = [...rows];
  if (order !== null) {
    const key = at[order];
    sorted.sort((a, b) => (a[key] === b[key] ? 0 : a[key] === null ? 1 : b[key] === null ? -1 : a[key] < b[key] === falling ? 1 : -1));
  }
  byId("table").replaceChildren();
  const whole = made("table", byId("table")), head = whole.createTHead().insertRow(), body = whole.createTBody();
  for (const name of shown) {
    const mark = order === name ? (falling ? " \u25be" : " \u25b4") : "";
    made("th", head, name + mark, { onclick: () => { falling = order === name && !falling; order = name; table(); } });
  }
  for (const row of sorted) {
    const line = body.insertRow();
    if (row[at.status] === "failed") line.className = "failed";
    for (const name of shown) line.insertCell().textContent = show(row[at[name]]);
  }
}

// First the benchmark's main figure, along the axis with the most values.
const FIRST = ["mean_ns", "latency_ns", "half_round_trip_ns", "bandwidth_bytes_per_s", "messages_per_s", "goodput_bits_per_s", "max_finish_ns", "value"];

function begin() {
  const numbers = columns.filter((name) => isNumber(name) && !["point", ...axes].includes(name) && !stages.includes(name));
  const changing = numbers.filter(varies);
  const ys = changing.length ? changing : numbers, xs = apart.length ? [...apart] : ["point"];
  for (const [id, names] of [["y", ys], ["x", xs]]) {
    for (const name of names) byId(id).append(new Option(labels[name], name));
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

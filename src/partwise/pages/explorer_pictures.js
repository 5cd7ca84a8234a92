"use strict";
// The explorer is one script in three files: its pictures, its panels, and the page. It draws what Python has put into
// the elements #page-data (JSON) and #page-arrays (compressed numbers). Here: numbers, elements and pictures.

// ---- numbers

const page = JSON.parse(document.getElementById("page-data").textContent);
const { levels, view, kind } = page;
let block; // all arrays, as bytes
const unfolded = new Map(); // rows that were decoded

async function inflated(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function rows(reference) { // one Float32Array per row, as stored by Arrays.rows
  if (unfolded.has(reference)) return unfolded.get(reference);
  const { at, count, width, scales } = reference;
  const bytes = new Uint8Array(block, at, 2 * count);
  const found = scales.map((scale, j) => {
    const row = new Float32Array(width);
    for (let i = 0, value = 0; i < width; i++) {
      const folded = bytes[j * width + i] | (bytes[count + j * width + i] << 8);
      value += folded & 1 ? -(folded + 1) / 2 : folded / 2;
      row[i] = (value * scale) / page.steps;
    }
    return row;
  });
  unfolded.set(reference, found);
  return found;
}

const floats = ({ at, count }) => new Float32Array(block, at, count);
const largest = (row) => row.reduce((most, value) => (value > most ? value : most), 0) || 1;
const number = (value, digits = 4) => (value === null || value === undefined || Number.isNaN(value) ? "–" : String(Number(value.toPrecision(digits))));
const count_of = (value, digits = 4) => number(value, Math.max(digits, String(Math.round(value)).length)); // never tens for ones
const listed = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");
const counted = (count, one, several = `${one}s`) => `${count} ${count === 1 ? one : several}`;
const percent = (share) => (share > 0.9995 && share < 1 ? `${Math.floor(share * 1e6) / 1e4} %` : `${(100 * share).toFixed(1)} %`);
const asked = (level) => (level.asked === null ? "no constraint" : number(level.asked));
const nameOf = (sample) => page.names[sample] ?? `sample ${sample}`;

function activationsOf(sample, level) { // of a sample whose data the page holds
  const r = page.counts.components;
  const first = page.samples.indexOf(sample) * r;
  return floats(level.activations).subarray(first, first + r);
}

function sumOf(sample, level, off) { // the model of a sample, without the components in `off`
  const weights = rows(level.weights);
  const sum = new Float64Array(weights[0].length);
  activationsOf(sample, level).forEach((activation, j) => {
    if (!activation || off.has(j)) return;
    const row = weights[j];
    for (let i = 0; i < sum.length; i++) sum[i] += activation * row[i];
  });
  return sum;
}

// ---- elements

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes, text) { // an element of SVG
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const named = (text) => element("bdi", { class: "name", title: text }, text);
const bar = (value, most, label) => element("progress", { max: 1, value: Math.max(value / (most || 1) || 0, 0), "aria-label": label });

// ---- pictures: one function for each kind of data. `tone` is weights, photo, or residual

function tinted(data, at, value, tone) { // writes a value from 0 to 1 (residual: −1 to 1) as red, green, blue
  if (tone === "residual") {
    const size = Math.min(Math.abs(value), 1);
    const end = value > 0 ? ORANGE : BLUE;
    for (let c = 0; c < 3; c++) data[at + c] = Math.round(255 + (end[c] - 255) * size);
  } else {
    const grey = Math.min(Math.max(tone === "weights" ? 1 - value : value, 0), 1);
    data[at] = data[at + 1] = data[at + 2] = Math.round(255 * grey);
  }
}

const ORANGE = [194, 81, 0], BLUE = [0, 114, 178];

function pixels(canvas, height, width, values, tone, channels = 1, inside = null) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  const { data } = image;
  for (let i = 0; i < height * width; i++) {
    const mean = channels === 3 ? (values[3 * i] + values[3 * i + 1] + values[3 * i + 2]) / 3 : values[i];
    if (channels === 1 || tone === "residual") tinted(data, 4 * i, mean, tone);
    else for (let c = 0; c < 3; c++) data[4 * i + c] = Math.round(255 * Math.min(values[3 * i + c], 1));
    data[4 * i + 3] = (inside?.has(i) ?? true) && !Number.isNaN(mean) ? 255 : 0;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const lines = new WeakMap(); // how each curve is drawn again in the size at which it is shown: scaled, it would look dotted
const resized = new ResizeObserver((entries) => entries.forEach(({ target: { clientWidth, clientHeight }, target }) => {
  const [width, height] = [clientWidth, clientHeight].map((size) => Math.round(size * devicePixelRatio));
  if (width && height && (width !== target.width || height !== target.height)) lines.get(target)(width, height, devicePixelRatio);
}));

function line(canvas, values, tone, ink) { // a curve over the features with the area below it, scaled to 1
  const draw = (...size) => drawn_line(canvas, values, tone, ink, ...size);
  draw(480, 160, 2);
  lines.set(canvas, draw);
  resized.observe(canvas);
}

function drawn_line(canvas, values, tone, ink, width, height, stroke) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  const zero = tone === "residual" ? height / 2 : height - 2 * stroke;
  const tall = tone === "residual" ? height / 2 - 3 * stroke : height - 5 * stroke;
  const last = Math.max(values.length - 1, 1);
  const trace = (kept) => {
    pen.beginPath();
    values.forEach((value, i) => pen.lineTo((i / last) * width, zero - kept(Math.max(Math.min(value, 1), -1)) * tall));
  };
  const areas = tone === "residual" ? [["--second", (value) => Math.max(value, 0)], ["--accent", (value) => Math.min(value, 0)]] : [[ink, (value) => value]];
  for (const [hue, kept] of areas) {
    trace(kept);
    pen.lineTo(width, zero);
    pen.lineTo(0, zero);
    pen.globalAlpha = tone === "residual" ? 0.6 : 0.15;
    pen.fillStyle = colour(hue);
    pen.fill();
  }
  pen.globalAlpha = 1;
  trace((value) => value);
  pen.strokeStyle = colour(tone === "residual" ? "--quiet" : ink);
  pen.lineWidth = tone === "residual" ? stroke / 2 : stroke;
  pen.stroke();
}

function slices(canvas, planes, values, tone) { // three planes side by side, in millimetres
  const tall = Math.max(...planes.map((plane) => plane.up));
  const wide = planes.reduce((sum, plane) => sum + plane.across, 0);
  const zoom = 640 / (1.06 * wide);
  canvas.width = 640;
  canvas.height = Math.ceil(tall * zoom);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  let left = 0, first = 0;
  for (const plane of planes) {
    const one = document.createElement("canvas");
    pixels(one, plane.height, plane.width, values.subarray(first, first + plane.height * plane.width), tone);
    const [across, up] = [plane.across * zoom, plane.up * zoom];
    const top = (canvas.height - up) / 2;
    pen.drawImage(one, left, top, across, up);
    pen.fillStyle = "#808890";
    pen.font = "600 16px system-ui, sans-serif";
    pen.textBaseline = "top";
    pen.fillText(plane.ends[0], left + 2, top + 2);
    pen.textAlign = "right";
    pen.fillText(plane.ends[1], left + across - 2, top + 2);
    pen.textAlign = "left";
    left += across + 0.0283 * 640;
    first += plane.height * plane.width;
  }
}

const inside = view.inside ? new Set(view.inside) : null;
const scaled = (row, by) => Float64Array.from(row, (value) => value / by);

function sample_picture(canvas, row, by, tone, ink = "--accent", seen = view) {
  const values = scaled(row, by);
  if (kind === "images") pixels(canvas, seen.shape[0], seen.shape[1], values, tone, seen.shape[2] ?? 1, seen === view ? inside : null);
  else if (kind === "volumes") slices(canvas, seen.planes, values, tone);
  else line(canvas, values, tone, ink);
  return canvas;
}

function part_picture(level, j) { // a canvas, or the list of the strongest features
  const label = `component ${j}, ${asked(level)}`;
  if (kind === "bars") return feature_list(level.parts[j].specific.slice(0, 6), j);
  const canvas = element("canvas", { role: "img", "aria-label": label, class: `weights ${kind} ${view.shape?.[2] ? "colour" : ""}` });
  if (kind !== "volumes") {
    const row = rows(level.weights)[j];
    return sample_picture(canvas, row, largest(row), "weights", `--part-${j % 8}`);
  }
  const size = level.slices.count / page.counts.components;
  const bytes = new Uint8Array(block, level.slices.at + j * size, size);
  slices(canvas, view.planes, Float64Array.from(bytes, (byte) => (byte === 255 ? NaN : byte / 254)), "weights");
  return canvas;
}

function feature_list(features, j) {
  const most = features.length ? features[0][1] : 1;
  return element("ol", { class: `bars c${j % 8}` }, ...features.map(([name, specific]) =>
    element("li", {}, named(name), bar(specific, most, `specificity ${number(specific)}`))));
}

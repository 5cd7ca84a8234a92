"use strict";
// The explorer: draws what Python has put into the elements #page-data (JSON) and #page-arrays (compressed numbers).

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
const largest = (row) => row.reduce((most, value) => Math.max(most, value), 0) || 1;
const number = (value, digits = 4) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits))));
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
const bar = (value, most, label) => element("progress", { max: 1, value: Math.max(value / (most || 1), 0), "aria-label": label });

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
    data[4 * i + 3] = (inside ? inside.has(i) : !Number.isNaN(mean)) ? 255 : 0;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function line(canvas, values, tone, ink) { // a curve over the features with the area below it, scaled to 1
  const width = (canvas.width = 480), height = (canvas.height = 160);
  const pen = canvas.getContext("2d");
  const zero = tone === "residual" ? height / 2 : height - 4;
  const tall = tone === "residual" ? height / 2 - 6 : height - 10;
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
  pen.lineWidth = tone === "residual" ? 1 : 2;
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

// ---- state: what the address says

const free = levels.findIndex((level) => level.asked === null);
const state = { level: free, part: null, sample: null, off: new Set() };

function read_address() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const s = wanted.get("s");
  const places = levels.map((level) => Math.abs((level.asked ?? Infinity) - Number(s)));
  state.level = s === null || s === "free" || Number.isNaN(Number(s)) ? free : places.indexOf(Math.min(...places));
  if (state.level < 0) state.level = free;
  const whole = (name, most) => {
    const text = wanted.get(name);
    return text !== null && /^\d+$/.test(text) && Number(text) < most ? Number(text) : null;
  };
  state.part = whole("part", page.counts.components);
  const sample = whole("sample", page.counts.samples);
  state.sample = page.samples.includes(sample) ? sample : null;
  state.off.clear();
}

function write_address() {
  const level = levels[state.level];
  const words = [`s=${level.asked ?? "free"}`];
  if (state.part !== null) words.push(`part=${state.part}`);
  if (state.sample !== null) words.push(`sample=${state.sample}`);
  history.replaceState(null, "", `#${words.join("&")}`);
}

function go(changes) {
  Object.assign(state, changes);
  write_address();
  draw();
}

function reveal(panel) {
  panel.scrollIntoView({ block: "nearest" });
  panel.focus({ preventScroll: true });
}

// ---- the slider and the curves

const slider = element("input", {
  type: "range", id: "sparsity", min: 0, max: levels.length - 1, step: 1, "aria-label": "sparsity level",
  oninput: () => go({ level: Number(slider.value) }),
});
const told = element("output", { for: "sparsity", "aria-live": "polite" });
const ticks = element("div", { class: "ticks", "aria-hidden": "true" }, ...levels.map((level, k) =>
  element("span", { class: level.asked === null ? "free" : false, onclick: () => go({ level: k }) },
    level.asked === null ? "no constraint" : number(level.asked))));

const CURVES = [
  ["error", "Relative error", number],
  ["heldout", "Held-out error", number],
  ["nonzeros", "Features per part", number],
  ["explained", "Explained", percent],
].filter(([key]) => levels[0][key] !== null);

function curve([key, title, format]) {
  const [width, height, left, right, top, bottom] = [300, 165, 54, 10, 10, 24];
  const xs = levels.map((level) => level.asked ?? level.sparsity ?? 0);
  const ys = levels.map((level) => level[key]);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const most = Math.max(...ys) || 1;
  const least = Math.max(0, Math.min(...ys, 0.9 * most)); // differences of a few percent do not fill the chart
  const x = (value) => left + 8 + ((value - low) / (high - low || 1)) * (width - left - right - 8);
  const y = (value) => top + (1 - (value - least) / (most - least)) * (height - top - bottom - 6);
  const drawn = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "curve" });
  drawn.append(...[height - bottom, y(most)].map((place) => shape("line", { x1: left, x2: width, y1: place, y2: place, class: "rule" })));
  const cursor = shape("line", { y1: top, y2: height - bottom, class: "cursor" });
  const points = levels.map((level, k) => [k, level]).filter(([, level]) => level.asked !== null);
  drawn.append(cursor, shape("polyline", { points: points.map(([k]) => `${x(xs[k])},${y(ys[k])}`).join(" ") }));
  levels.forEach((level, k) => drawn.append(level.asked === null
    ? shape("path", { d: `M${x(xs[k])},${y(ys[k]) - 6} l6,6 l-6,6 l-6,-6 z`, class: "free" })
    : shape("circle", { cx: x(xs[k]), cy: y(ys[k]), r: 3 })));
  const dot = shape("circle", { r: 5.5, class: "cursor" });
  const short = key === "explained" ? (value) => `${number(100 * value, 3)} %` : (value) => number(value, 3);
  drawn.append(dot, shape("text", { x: left, y: height - 4 }, number(low, 2)),
    shape("text", { x: width - right, y: height - 4, "text-anchor": "end" }, number(high, 2)),
    shape("text", { x: (width + left) / 2, y: height - 4, "text-anchor": "middle" }, "sparsity"),
    ...[most, least].map((value) => shape("text", { x: left - 4, y: y(value) + 5, "text-anchor": "end" }, short(value))));
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const far = xs.map((value) => Math.abs(x(value) - at));
    go({ level: far.indexOf(Math.min(...far)) });
  });
  const value = element("strong", { "data-curve": key });
  const update = () => {
    const k = state.level;
    for (const [name, place] of Object.entries({ x1: x(xs[k]), x2: x(xs[k]) })) cursor.setAttribute(name, place);
    dot.setAttribute("cx", x(xs[k]));
    dot.setAttribute("cy", y(ys[k]));
    value.textContent = format(ys[k]);
    drawn.setAttribute("aria-label", `${title} over sparsity; at ${asked(levels[k])}: ${format(ys[k])}`);
  };
  return [element("figure", { class: "chart" }, element("figcaption", {}, title, value), drawn), update];
}

// ---- panels

const gallery = element("div", { class: `gallery ${kind}` });
const part_panel = element("section", { class: "panel", tabindex: -1, "aria-label": "Component", hidden: true });
const sample_panel = element("section", { class: "panel", tabindex: -1, "aria-label": "Sample", hidden: true });
const strip = element("div", { class: `strip ${kind}` });
const closing = (changes) => element("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => go(changes) }, "×");

function draw_gallery() {
  const level = levels[state.level];
  gallery.replaceChildren(...level.parts.map((part, j) =>
    element("button", {
      type: "button", class: `card c${j % 8}`, "aria-pressed": String(state.part === j), "data-part": j,
      onclick: () => { go({ part: j }); reveal(part_panel); },
    }, part_picture(level, j), ...(level.courses ? [small_course(level, j)] : []), element("span", { class: "caption" }, `Part ${j}`,
      element("small", {}, part.place ?? ""), element("span", { class: "share" }, percent(part.explained))))));
}

function draw_part() {
  const j = state.part, level = levels[state.level];
  part_panel.hidden = j === null;
  if (j === null) return;
  const part = level.parts[j];
  const captioned = kind === "lines" ? features_axis() : element("figcaption", {}, caption(part));
  const fact = (name, text, key) => element("div", {}, element("dt", {}, name), element("dd", { "data-fact": key }, text));
  const pieces = [
    closing({ part: null }),
    element("h3", { class: `c${j % 8}` }, `Part ${j}`),
    element("div", { class: `detail ${kind}` },
      ...(kind === "bars" ? [] : [element("figure", { class: "large" }, part_picture(level, j), captioned)]), // bars: the table below
      element("div", {},
        element("dl", { class: "facts" },
          fact("Sparsity", number(part.sparsity), "sparsity"),
          fact("Explained share", percent(part.explained), "explained"),
          fact("Nonzero features", `${part.nonzeros} of ${page.counts.features}`, "nonzeros")),
        element("p", { class: "buttons" },
          element("button", { type: "button", onclick: () => save_png(level, j) }, "Download PNG"),
          element("button", { type: "button", onclick: () => save_csv(level, j) }, "Download CSV")))),
    element("h4", {}, "Over all levels"), life(j),
  ];
  if (level.courses) pieces.push(element("h4", {}, "Activation over time"), course(level, j));
  pieces.push(element("h4", {}, "Strongest samples"), samples_of(part));
  if (kind === "bars" || kind === "lines") pieces.push(element("h4", {}, "Strongest features"), features_of(part, j));
  part_panel.replaceChildren(...pieces);
}

function axis(low, high, label) { // round numbers below a curve, and what they are
  const rough = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999);
  const numbers = element("span");
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++) {
    const share = (k * step - low) / (high - low || 1);
    const place = element("i", { class: share < 0.03 ? "first" : share > 0.97 ? "last" : false }, number(k * step));
    place.style.left = `${100 * share}%`;
    numbers.append(place);
  }
  return element("figcaption", { class: "axis" }, numbers, element("b", {}, label));
}

function caption(part) {
  if (kind === "volumes") return `${view.planes.map((plane) => plane.name).join(", ")} slices through the peak at ${part.place}`;
  return kind === "images" ? "Scaled to the largest weight." : "";
}

const features_axis = () => axis(view.x[0], view.x.at(-1), view.label);

function life(j) {
  return element("div", { class: `life ${kind}` }, ...levels.map((level, k) =>
    element("button", { type: "button", "aria-pressed": String(state.level === k), onclick: () => go({ level: k }) },
      kind === "bars" ? element("span", { class: "words" }, ...level.parts[j].specific.slice(0, 3).map(([name]) => named(name))) : part_picture(level, j),
      element("small", { class: level.asked === null ? "free" : false }, level.asked === null ? "none" : number(level.asked)))));
}

function small_course(level, j) {
  const row = rows(level.courses)[j];
  const canvas = element("canvas", { class: "lines course", role: "img", "aria-label": `activation of component ${j} over time` });
  line(canvas, scaled(row, largest(row)), "weights", "--quiet");
  return canvas;
}

function course(level, j) {
  const row = rows(level.courses)[j];
  const canvas = element("canvas", { class: "wide", role: "img", "aria-label": `activation of component ${j} over time` });
  line(canvas, scaled(row, largest(row)), "weights", "--second");
  return element("figure", { class: "wide" }, canvas, axis(0, page.times.end, "time (s)"));
}

function sample_button(sample, value) {
  const held = page.samples.includes(sample);
  const name = nameOf(sample);
  const text = element("span", { class: "caption" }, named(name), value === undefined ? "" : element("small", { "data-activation": sample }, number(value)));
  if (!held) return element("span", { class: "sample missing", title: "this page does not hold its data" }, ...thumbnail(sample, name), text);
  const button = element("button", {
    type: "button", class: "sample", "data-sample": sample, "aria-pressed": String(state.sample === sample),
    onclick: () => { go({ sample, off: new Set() }); reveal(sample_panel); },
  });
  if (kind !== "bars") {
    const row = original(sample);
    button.append(sample_picture(element("canvas", { class: `photo ${kind}`, role: "img", "aria-label": name }), row, largest(row), "photo"));
  } else text.append(...strongest_words(sample));
  button.append(text);
  return button;
}

function thumbnail(sample, name) { // a small picture of a sample whose data the page does not hold
  const at = page.thumbnails?.samples.indexOf(sample) ?? -1;
  if (at < 0) return [];
  const row = rows(page.thumbnails.rows)[at];
  return [sample_picture(element("canvas", { class: `photo ${kind}`, role: "img", "aria-label": name }), row, largest(row), "photo", "--accent", page.thumbnails.view)];
}

function strongest_words(sample) { // the names of its largest features
  const row = original(sample);
  const order = [...row.keys()].filter((i) => row[i] > 0).sort((a, b) => row[b] - row[a]).slice(0, 3);
  return order.length ? [element("small", { class: "name" }, order.map((i) => view.names[i]).join(", "))] : [];
}

const original = (sample) => rows(page.originals)[page.samples.indexOf(sample)];
const samples_of = (part) => element("div", { class: `strip ${kind}` }, ...part.samples.map(([sample, value]) => sample_button(sample, value)));

function features_of(part, j) {
  const [weight, specific] = [1, 2].map((k) => Math.max(...part.features.map((feature) => feature[k]), 0));
  const cell = (value, most, what) => element("td", {}, bar(value, most, what), element("span", {}, number(value)));
  return element("table", { class: `features c${j % 8}` },
    element("thead", {}, element("tr", {}, ...["Feature", "Weight", "Specificity"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...part.features.map(([name, value, rare]) =>
      element("tr", {}, element("th", { scope: "row" }, named(name)), cell(value, weight, "weight"), cell(rare, specific, "specificity")))));
}

// ---- samples

let shown = 24;

function draw_strip() {
  const more = page.samples.length - shown;
  strip.replaceChildren(...page.samples.slice(0, shown).map((sample) => sample_button(sample)));
  if (more > 0) strip.append(element("button", { type: "button", class: "more", onclick: () => { shown += 96; draw_strip(); } }, `${more} more`));
}

function mark_sample() { // in the strip, which is the same at all levels
  for (const button of strip.querySelectorAll("[data-sample]")) button.setAttribute("aria-pressed", String(Number(button.dataset.sample) === state.sample));
}

function draw_sample() {
  const sample = state.sample, level = levels[state.level];
  sample_panel.hidden = sample === null;
  if (sample === null) return;
  const row = original(sample), by = largest(row);
  const pictures = element("div", { class: `pictures ${kind}` });
  const redraw = () => {
    const sum = sumOf(sample, level, state.off);
    pictures.replaceChildren(...(kind === "bars" ? [compared(row, sum, sumOf(sample, level, new Set()))] : [["Original", row], ["Model", sum], ["Residual", row.map((value, i) => value - sum[i])]].map(([name, values]) =>
      element("figure", {}, sample_picture(element("canvas", { role: "img", class: `photo ${kind}`, "data-picture": name, "aria-label": `${name} of ${nameOf(sample)}` }), values, by, name === "Residual" ? "residual" : "photo", name === "Model" ? "--second" : "--accent"), ...(kind === "lines" ? [features_axis()] : []), element("figcaption", {}, name)))));
  };
  const activations = activationsOf(sample, level);
  const order = [...activations.keys()].filter((j) => activations[j] > 0).sort((a, b) => activations[b] - activations[a]);
  const most = Math.max(...activations, 0);
  const boxes = order.map((j) => {
    const box = element("input", { type: "checkbox", "data-switch": j, onchange: () => { box.checked ? state.off.delete(j) : state.off.add(j); redraw(); } });
    box.checked = !state.off.has(j);
    return element("li", { class: `c${j % 8}` }, element("label", {}, box, element("span", {}, `Part ${j}`), bar(activations[j], most, "activation"), element("span", { class: "value", "data-value": j }, number(activations[j]))));
  });
  const all = (on) => () => { state.off = new Set(on ? [] : order); draw_sample(); };
  redraw();
  sample_panel.replaceChildren(
    closing({ sample: null }), element("h3", {}, named(nameOf(sample))), pictures,
    element("p", { class: "note" }, kind === "volumes" ? `Slices at ${view.place}. ` : "", "Model: the sum of the components that are switched on. Residual: original − model, orange where the model is too low."),
    element("p", { class: "buttons" }, element("button", { type: "button", onclick: all(true) }, "All on"), element("button", { type: "button", onclick: all(false) }, "All off")),
    element("ol", { class: "switches" }, ...boxes));
}

function compared(row, sum, whole) { // named features, by the larger of original and whole model
  const height = (i) => Math.max(row[i], whole[i]);
  const order = [...row.keys()].filter((i) => height(i) > 0).sort((a, b) => height(b) - height(a)).slice(0, 16);
  const most = Math.max(...order.map(height), 0);
  const cell = (value, hue, what) => element("td", { class: hue }, bar(Math.abs(value), most, `${what} ${number(value)}`), element("span", {}, number(value, 3)));
  return element("table", { class: "features compared" },
    element("thead", {}, element("tr", {}, ...["Feature", "Original", "Model", "Residual"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...order.map((i) => element("tr", {}, element("th", { scope: "row" }, named(view.names[i])),
      cell(row[i], "", "original"), cell(sum[i], "model", "model"), cell(row[i] - sum[i], row[i] > sum[i] ? "low" : "high", "residual")))));
}

// ---- downloads

function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const filename = (level, j, end) => `part-${j}-${level.asked ?? "free"}.${end}`;

function save_png(level, j) {
  const small = kind === "bars" ? bars_drawn(level.parts[j].features) : part_picture(level, j);
  const zoom = Math.max(Math.round(480 / small.width), 1);
  const large = element("canvas", { width: small.width * zoom, height: small.height * zoom });
  const pen = large.getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, large.width, large.height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, large.width, large.height);
  large.toBlob((blob) => save(blob, filename(level, j, "png")));
}

function bars_drawn(features) {
  const canvas = element("canvas", { width: 640, height: 28 * features.length + 12 });
  const pen = canvas.getContext("2d");
  pen.font = "16px system-ui, sans-serif";
  features.forEach(([name, weight], i) => {
    pen.fillStyle = "#1c2127";
    pen.fillText(name.length > 32 ? `${name.slice(0, 31)}…` : name, 8, 28 * i + 24);
    pen.fillStyle = "#0072b2";
    pen.fillRect(300, 28 * i + 10, (330 * weight) / features[0][1], 18);
  });
  return canvas;
}

function csv_of(level, j) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const name = (i) => (kind === "bars" ? cell(view.names[i]) : kind === "lines" ? String(view.x[i]) : String(i));
  const head = `# part ${j}, sparsity ${asked(level)}; weights rounded to 1/${page.steps} of the largest\nfeature,weight`;
  return [head, ...Array.from(rows(level.weights)[j], (value, i) => `${name(i)},${value}`)].join("\n") + "\n";
}

const save_csv = (level, j) => save(new Blob([csv_of(level, j)], { type: "text/csv" }), filename(level, j, "csv"));

// ---- the page

let updates = [];

function draw() {
  const level = levels[state.level];
  slider.value = state.level;
  slider.setAttribute("aria-valuetext", asked(level));
  told.textContent = level.asked === null ? `no constraint (median sparsity ${number(level.sparsity)})` : `sparsity ${number(level.asked)}`;
  [...ticks.children].forEach((tick, k) => tick.classList.toggle("now", k === state.level));
  for (const update of updates) update();
  const { part } = document.activeElement.dataset; // the focus stays on its card, which is drawn anew
  draw_gallery();
  if (part !== undefined) gallery.children[part].focus({ preventScroll: true });
  draw_part();
  mark_sample();
  draw_sample();
}

function keys(event) {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) go({ level: Math.min(Math.max(state.level + step, 0), levels.length - 1) });
  else if (event.key === "Escape") go(state.sample !== null ? { sample: null } : { part: null });
  else return;
  event.preventDefault();
}

const PICTURES = {
  images: "Blank is zero; each component is scaled to its largest weight.",
  volumes: `Slices through the largest weight of each component${view.planes?.[0].ends[0] ? "; L is left, R right, P posterior, A anterior" : ""}.`,
  lines: `Weights over ${view.label}; each component has its own scale.`,
  bars: "The features that are most specific to each component.",
};

async function start() {
  block = await inflated(document.getElementById("page-arrays").textContent);
  const { samples, features, components } = page.counts;
  document.querySelector(".about").textContent = `${counted(samples, "sample")} × ${counted(features, "feature")} · ${counted(components, "component")} at ${counted(levels.length - 1, "sparsity", "sparsities")}, and without a constraint`;
  const curves = CURVES.map(curve);
  updates = curves.map(([, update]) => update);
  document.getElementById("explorer").replaceChildren(
    element("section", { class: "slider" }, element("label", { for: "sparsity" }, told), slider, ticks),
    element("section", { class: "charts curves", "aria-label": "Curves over sparsity" }, ...curves.map(([figure]) => figure)),
    element("h2", {}, "Components"), element("p", {}, `${PICTURES[kind]} Select one for its details. ← and → change the sparsity.`),
    gallery, part_panel,
    element("h2", {}, "Samples"), element("p", {}, "Select one to see how its components add up."), sample_panel, strip);
  read_address();
  draw_strip();
  draw();
  if (state.sample !== null) reveal(sample_panel);
  else if (state.part !== null) reveal(part_panel);
  addEventListener("hashchange", () => { read_address(); draw(); });
  addEventListener("keydown", keys);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw_strip(); draw(); });
}

start();

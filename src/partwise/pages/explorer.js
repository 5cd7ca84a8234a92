// The page of the explorer: what its address says, the slider, and the curves.

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
    level.asked === null ? "no constraint" : number(level.asked, 3))));

const CURVES = [
  ["error", "Relative error", number],
  ["heldout", "Held-out error", number],
  ["nonzeros", "Features per part", count_of],
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
  // the ends of an axis need not show the rounding of a zero
  const rounded = (value, most, digits) => number(Math.abs(value) < 1e-6 * most ? 0 : value, digits);
  const short = { explained: (value) => `${number(100 * value, 3)} %`, nonzeros: (value) => count_of(value, 3) }[key] ?? ((value) => rounded(value, most, 3));
  drawn.append(dot, shape("text", { x: left, y: height - 4 }, rounded(low, high, 2)),
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
  images: `${view.shape?.[2] ? "Black" : "Blank"} is zero; each component is scaled to its largest weight.`,
  volumes: `Slices through the largest weight of each component${view.planes?.[0].ends[0] ? "; L is left, R right, P posterior, A anterior" : ""}.`,
  lines: `Weights over ${view.label}; each component has its own scale.`,
  bars: "The features that are most specific to each component.",
};

async function start() {
  block = await inflated(document.getElementById("page-arrays").textContent);
  const { samples, features, components } = page.counts;
  document.querySelector(".about").textContent = `${counted(samples, "sample")} × ${counted(features, "feature")} · ${counted(components, "component")} at ${counted(levels.length - 1, "sparsity", "sparsities")}, and without a constraint`;
  document.getElementById("explorer").classList.toggle("gaps", page.unseen !== null);
  const curves = CURVES.map(curve);
  updates = curves.map(([, update]) => update);
  document.getElementById("explorer").replaceChildren(
    element("section", { class: "slider" }, element("label", { for: "sparsity" }, told), slider, ticks),
    element("section", { class: "charts curves", "aria-label": "Curves over sparsity" }, ...curves.map(([figure]) => figure)),
    element("h2", {}, "Components"), element("p", {}, `${PICTURES[kind]} `, element("span", { class: "hint" }, "Select one for its details. ←\u00a0and\u00a0→ change the sparsity.")),
    gallery, part_panel,
    element("h2", {}, "Samples"), element("p", { class: "hint" }, "Select one to see how its components add up."), sample_panel, strip);
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

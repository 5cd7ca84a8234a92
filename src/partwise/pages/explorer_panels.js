// The gallery, the panels of a component and of a sample, and downloads.

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
  pieces.push(element("h4", {}, "Strongest samples"), part.samples.length ? samples_of(part) : element("p", { class: "note" }, "None: no sample uses this component."));
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
  if (kind === "volumes") return `Slices through the peak at ${part.place}: ${listed(view.planes.map((plane) => plane.name))}`;
  return kind === "images" ? "Scaled to the largest weight." : "";
}

const features_axis = () => axis(view.x[0], view.x.at(-1), view.label);

function life(j) {
  return element("div", { class: `life ${kind}` }, ...levels.map((level, k) =>
    element("button", { type: "button", "aria-pressed": String(state.level === k), onclick: () => go({ level: k }) },
      kind === "bars" ? element("span", { class: "words" }, ...level.parts[j].specific.slice(0, 3).map(([name]) => named(name))) : part_picture(level, j),
      element("small", { class: level.asked === null ? "free" : false }, level.asked === null ? "none" : number(level.asked, 3)))));
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

function original(sample) { // NaN where it is missing
  const at = page.samples.indexOf(sample), row = rows(page.originals)[at];
  if (!page.unseen) return row;
  const unseen = new Uint8Array(block, page.unseen.at + at * row.length, row.length);
  return row.map((value, i) => (unseen[i] ? NaN : value));
}

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
    element("p", { class: "note" }, kind === "volumes" ? `Slices at ${view.place}. ` : "", "Model: the sum of the components that are switched on. Residual: original − model, orange where the model is too low.", page.unseen ? " Hatched or –: missing." : ""),
    ...(boxes.length ? [
      element("p", { class: "buttons" }, element("button", { type: "button", onclick: all(true) }, "All on"), element("button", { type: "button", onclick: all(false) }, "All off")),
      element("ol", { class: "switches" }, ...boxes),
    ] : [element("p", { class: "note" }, "It uses no component.")]));
}

function compared(row, sum, whole) { // named features, by the larger of original and whole model
  const height = (i) => Math.max(row[i] || 0, whole[i]);
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

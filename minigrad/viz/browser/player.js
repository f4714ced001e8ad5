// The player: one drawing, class changes, never a new layout.  Data reaches the page as text and class names only.

const STATES = ["pending", "active", "done"];
const LINE_STATES = ["waiting", "running", "still"];
const SVG = "http://www.w3.org/2000/svg";
const SIGNS = {                                     // drawn, because fonts lack them: polygons in a square of 12
  first: ["0,1 2,1 2,11 0,11", "7,1 2,6 7,11", "12,1 7,6 12,11"], back: ["7,1 1,6 7,11", "8,1 10,1 10,11 8,11"], play: ["2,1 11,6 2,11"],
  next: ["5,1 11,6 5,11", "2,1 4,1 4,11 2,11"], last: ["10,1 12,1 12,11 10,11", "0,1 5,6 0,11", "5,1 10,6 5,11"], pause: ["2,1 5,1 5,11 2,11", "7,1 10,1 10,11 7,11"],
};
const SLOW = 900;                                   // milliseconds between two steps while playing

// The parts of the drawing that change: nodes with their live text, lines with their two ends.
function parts(svg, script) {
  const nodes = new Map(), edges = [];
  if (!svg) return { nodes, edges };
  for (const group of svg.querySelectorAll("g.node")) {
    const id = nodeId(group);
    const all = [...group.querySelectorAll("text")];
    const live = (script.live[id] || []).map(([drawn, before]) => ({ drawn, before, at: all.find((t) => t.textContent === drawn) }));
    nodes.set(id, { group, live, state: "" });
  }
  for (const group of svg.querySelectorAll("g.edge")) {
    const ends = [...group.classList].filter((c) => nodes.has(c));
    if (ends.length === 2) edges.push({ group, ends, state: "" });
  }
  return { nodes, edges };
}

// For each node the steps that touch it and what it shows from then on: a frame is looked up, not replayed.
function timeline(script) {
  const shows = new Map();
  script.steps.forEach((step, i) => {
    for (const [id, texts] of Object.entries(step.shows)) {
      if (!shows.has(id)) shows.set(id, []);
      shows.get(id).push([i, texts]);
    }
  });
  return shows;
}

function shownAt(list, frame) {
  let low = 0, high = list.length;                  // the last entry before the frame
  while (low < high) { const mid = (low + high) >> 1; if (list[mid][0] < frame) low = mid + 1; else high = mid; }
  return low ? list[low - 1][1] : null;
}

// The places that the drawing gave the texts that change: measured at once, because measuring between writing is slow,
// and only where they are seen, because a widget is made before it is shown.
function measure(nodes) {
  const lines = [...nodes.values()].flatMap((part) => part.live).filter((line) => line.at);
  for (const line of lines) line.at.textContent = line.drawn;
  for (const line of lines) line.room = line.at.getComputedTextLength();
  for (const line of lines) {
    if (line.at.getAttribute("text-anchor") === "start") {
      line.at.setAttribute("x", String(Number(line.at.getAttribute("x")) + line.room / 2));
      line.at.setAttribute("text-anchor", "middle");
    }
    line.narrow = line.before.length === 1 && line.room < Number(line.at.getAttribute("font-size"));
    if (line.narrow) line.at.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
}

// Words of another length stay in the middle of their place; a dash, as wide as a letter is high, keeps to a narrow one.
function write(line, words) {
  if (!line.at || line.at.textContent === words) return;
  line.at.textContent = words;
  if (line.narrow && words === line.before) line.at.setAttribute("textLength", String(line.room));
  else line.at.removeAttribute("textLength");
}

function setState(part, state) {
  if (part.state === state) return;
  part.group.classList.remove(...STATES, ...LINE_STATES);
  part.group.classList.add(state);
  part.state = state;
}

// The numbers of an answer, however they are written: 1/3, −0,5, [1 2], array([1., 2.]), (2, 3), 2×3, ∞.
function numbersIn(text, single) {
  let t = text.trim().toLowerCase().replace(/[−–]/g, "-").replace(/∞/g, "inf").replace(/\b(true)\b/g, "1").replace(/\b(false)\b/g, "0")
    .replace(/\b(array|tensor|np|mg|list|dtype|float\d*|int\d*|bool|requires_grad)\b[=.]?/g, " ").replace(/[×x*·]\s*10\s*(\^|\*\*)\s*/g, "e");
  if (single && /^[-+]?\d*,\d+$/.test(t)) t = t.replace(",", ".");
  const found = t.replace(/(\d)\s*[×x]\s*(?=\d)/g, "$1 ").split(/[\s,;()[\]{}|]+/).filter(Boolean).map((word) => {
    const [over, under, more] = word.split("/");
    const one = (w) => (w === undefined || w === "" ? NaN : /^[-+]?inf(inity)?$/.test(w) ? (w[0] === "-" ? -Infinity : Infinity) : Number(w));
    if (word === "nan") return "nan";
    return more !== undefined ? NaN : under === undefined ? one(over.replace(/%$/, "")) / (over.endsWith("%") ? 100 : 1) : one(over) / one(under);
  });
  return found.length && found.every((x) => x === "nan" || !Number.isNaN(x)) ? found : null;
}

function sameAnswer(given, wanted) {
  const plain = (t) => t.trim().replace(/\s/g, "").toLowerCase().replace(/−/g, "-");
  if (plain(given) === plain(wanted)) return true;
  const q = numbersIn(wanted, true), p = q && numbersIn(given, q.length === 1);
  const close = (x, y) => x === y || (Number.isFinite(x) && Math.abs(x - y) <= 0.01 * Math.max(Math.abs(y), 1e-9));
  return Boolean(p) && p.length === q.length && p.every((x, i) => close(x, q[i]));
}

// While one predicts, what is not known yet is not told by tooltips and descriptions either.
function secrets(svg) {
  const told = !svg ? [] : [...svg.querySelectorAll("title, desc, [aria-label], [aria-description]")].flatMap((at) => {
    const node = at.closest("g.node"), id = node && nodeId(node), inside = at.tagName === "title" || at.tagName === "desc";
    if (inside && at.tagName === "title" && !node) return [];
    const parts = inside ? [[() => at.textContent, (t) => { at.textContent = t; }]]
      : ["aria-label", "aria-description"].filter((k) => at.hasAttribute(k)).map((k) => [() => at.getAttribute(k), (t) => at.setAttribute(k, t)]);
    return parts.map(([get, set]) => ({ id, set, whole: get(), part: node ? get().split("\n")[0].split(" = ")[0] : "hidden while you predict" }));
  });
  return (open, known) => { for (const s of told) s.set(!open || (s.id && known(s.id)) ? s.whole : s.part); };
}

function sign(button, name) {
  const icon = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 12 12", width: "12", height: "12", "aria-hidden": "true", fill: "currentColor" })) {
    icon.setAttribute(key, value);
  }
  for (const points of SIGNS[name]) {
    const shape = document.createElementNS(SVG, "polygon");
    shape.setAttribute("points", points);
    icon.append(shape);
  }
  button.replaceChildren(icon);
}

function controls(root) {
  const bar = make("div", "mg-bar", { role: "group", "aria-label": "player" });
  const signed = (name, label) => { const made = button(bar, name, label, ""); sign(made, name); return made; };
  const c = { ...stage(), first: signed("first", "first step (Home)"), back: signed("back", "back (←)"), play: signed("play", "play (Space)"),
    next: signed("next", "forward (→)"), last: signed("last", "last step (End)") };
  c.range = make("input", "mg-range", { type: "range", min: "0", step: "1", "aria-label": "step" });
  c.count = make("span", "mg-count");
  c.iteration = make("span", "mg-iteration");
  bar.append(c.range, c.count, c.iteration);
  c.predict = button(bar, "predict", "predict: hide the next value and ask for it", "predict");
  c.formula = make("div", "mg-formula");
  c.form = make("form", "mg-ask", { hidden: "" });
  c.ask = make("label", "mg-question");
  c.answer = make("input", "mg-answer", { type: "text", autocomplete: "off", "aria-label": "your prediction" });
  c.form.append(c.ask, c.answer);
  c.check = button(c.form, "check", "check (Enter)", "check");
  c.check.type = "submit";
  c.answered = button(c.form, "show", "show the answer", "show");
  c.verdict = make("div", "mg-verdict", { "aria-live": "polite" });
  root.append(bar, c.say, c.formula, c.form, c.verdict, c.pic, c.zoom.bar, c.follow, c.details);
  return c;
}

function render({ model, el }) {
  const script = model.get("script"), steps = script.steps, total = steps.length;
  let timer = null, asked = null, painted = null;
  const root = make("div", "mg-player", { tabindex: "0", role: "region", "aria-label": `player: ${script.title || "graph"}` });
  const c = controls(root);
  const svg = drawing(model.get("svg"));
  const firstOf = (id) => script.first[id] ?? -1;
  const retell = c.show(svg, model.get("words"), (part) => !part.matches(".pending, .waiting"),  // what has not run yet is not told
    (id) => !model.get("prediction") || firstOf(id) < model.get("frame"));
  const { nodes, edges } = parts(svg, script);
  const shows = timeline(script), hide = secrets(svg);
  c.range.max = String(total);
  el.append(root);

  const stateAt = (id, frame, active) => (active.has(id) ? "active" : firstOf(id) < frame ? "done" : "pending");

  function paint() {
    const begun = performance.now();
    const frame = Math.max(0, Math.min(total, model.get("frame"))), step = frame ? steps[frame - 1] : null;
    const active = new Set(step && !(asked === frame && step.ask.operator) ? step.nodes : []);
    if (painted !== null && frame !== painted) { asked = asked === frame ? asked : null; }
    painted = frame;
    for (const [id, part] of nodes) {
      setState(part, stateAt(id, frame, active));
      if (!part.live.length) continue;
      const hidden = asked === frame && active.has(id);
      const texts = shownAt(shows.get(id) || [], hidden ? frame - 1 : frame);
      part.live.forEach((line, i) => write(line, hidden && step.ask.node === id && !i && line.before === "—" ? "?" : texts ? texts[i] : line.before));
    }
    for (const edge of edges) {
      const states = edge.ends.map((id) => nodes.get(id).state);
      const running = step && edge.ends.includes(step.nodes[0]);
      setState(edge, states.includes("pending") ? "waiting" : running ? "running" : "still");
    }
    const shown = asked === frame ? frame - 1 : frame;
    hide(model.get("prediction"), (id) => firstOf(id) < shown);
    const words = el.parentElement && el.parentElement.querySelector(":scope > details");
    if (words) words.hidden = Boolean(model.get("prediction"));  // all steps, with their answers
    speak(frame, step);
    retell();
    if (asked !== frame || !step.ask.operator) follow(step);
    root.dataset.frame = String(frame);
    root.dataset.milliseconds = String(performance.now() - begun);
  }

  function speak(frame, step) {
    const open = asked === frame && step && step.ask;
    c.range.value = String(frame);
    c.count.textContent = `${frame} of ${total}`;
    c.range.setAttribute("aria-valuetext", `step ${frame} of ${total}`);
    c.iteration.textContent = step && step.iteration != null ? `step ${step.iteration} of the loop` : "";
    c.say.textContent = open ? `Step ${frame} of ${total}: what comes next?` : step ? step.text : script.opening;
    c.formula.textContent = open || !step ? "" : step.formula;
    c.form.hidden = !open;
    root.classList.toggle("mg-predicting", Boolean(model.get("prediction")));
    if (open) c.ask.textContent = step.ask.what;
    c.first.disabled = c.back.disabled = frame === 0;
    c.next.disabled = c.last.disabled = frame === total;
    c.predict.setAttribute("aria-pressed", String(Boolean(model.get("prediction"))));
  }

  // Before anything has run, what comes first is in view.
  function follow(step) {
    const next = step || steps[0], part = next && nodes.get(next.nodes[0]);
    if (part) c.zoom.follow(part.group);
  }

  function go(frame, ask = false) {
    const to = Math.max(0, Math.min(total, frame));
    const open = ask && model.get("prediction") && to > 0 && steps[to - 1].ask;
    asked = open ? to : null;
    c.verdict.textContent = "";
    c.verdict.className = "mg-verdict";
    if (to === model.get("frame")) paint();
    else { model.set("frame", to); model.save_changes(); }
    if (open) { c.answer.value = ""; c.answer.focus(); }
  }

  function forward() {
    if (asked !== null) reveal("");
    go(model.get("frame") + 1, true);
  }

  function reveal(given) {
    const ask = steps[model.get("frame") - 1].ask;
    const right = given !== "" && sameAnswer(given, ask.answer);
    const wrong = given !== "" && !right;
    if (!wrong) { asked = null; paint(); }
    c.verdict.textContent = wrong ? `Not quite: ${given} is not it. Try again, or press show.` : right ? `Right: ${ask.answer}.` : `It is ${ask.answer}.`;
    c.verdict.className = `mg-verdict ${wrong ? "mg-wrong" : right ? "mg-right" : ""}`;
    if (wrong) c.answer.select(); else root.focus({ preventScroll: true });
  }

  function stop() {
    if (timer) clearInterval(timer);
    timer = null;
    sign(c.play, "play");
    c.play.setAttribute("aria-label", "play (Space)");
  }

  function toggle() {
    if (timer) return stop();
    if (model.get("frame") >= total) go(0);
    sign(c.play, "pause");
    c.play.setAttribute("aria-label", "pause (Space)");
    timer = setInterval(() => {
      if (model.get("frame") >= total) stop();
      else if (asked === null) forward();
    }, SLOW);
  }

  c.first.onclick = () => { stop(); go(0); };
  c.back.onclick = () => { stop(); go(model.get("frame") - 1); };
  c.next.onclick = () => { stop(); forward(); };
  c.last.onclick = () => { stop(); go(total); };
  c.play.onclick = toggle;
  c.range.oninput = () => { stop(); go(Number(c.range.value)); };
  c.predict.onclick = () => { model.set("prediction", !model.get("prediction")); model.save_changes(); asked = null; paint(); };
  c.form.onsubmit = (event) => { event.preventDefault(); if (asked !== null && c.answer.value.trim()) reveal(c.answer.value); };
  c.answered.onclick = () => { if (asked !== null) reveal(""); };
  c.pic.onclick = (event) => {
    const group = event.target.closest("g.node");
    const id = group && !event.followed && nodeId(group);
    if (id && id in script.first) { stop(); go(script.first[id] + 1); }
  };
  const keys = { ArrowRight: () => c.next.onclick(), ArrowLeft: () => c.back.onclick(), Home: () => c.first.onclick(),
    End: () => c.last.onclick(), " ": toggle };
  // JupyterLab's shortcuts hear a key before we do, and its arrows fold headings: our keys are not for it.
  const claim = (event) => root.toggleAttribute("data-lm-suppress-shortcuts", event.key in keys && !event.ctrlKey && !event.metaKey);
  window.addEventListener("keydown", claim, true);
  root.onkeydown = (event) => {
    const typing = event.target === c.answer, button = event.target.tagName === "BUTTON" && event.key === " ";
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!typing && plain && c.zoom.key(event)) { event.stopPropagation(); return; }
    if (typing || button || !(event.key in keys) || !plain) {
      if (typing) event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  model.on("change:frame", paint);
  model.on("change:prediction", paint);
  const shown = new ResizeObserver(() => {
    if (!c.pic.offsetWidth) return;
    shown.disconnect();
    measure(nodes);
    paint();
  });
  shown.observe(c.pic);
  paint();
  return () => { stop(); shown.disconnect(); c.zoom.end(); window.removeEventListener("keydown", claim, true); };
}

// The player: one drawing, class changes, never a new layout.  Data reaches the page as text and class names only.

const ALLOWED = new Set(["svg", "g", "polygon", "polyline", "path", "ellipse", "text", "title", "desc", "style"]);
const STATES = ["pending", "active", "done"];
const SLOW = 900;                                   // milliseconds between two steps while playing

function make(tag, className, attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// The drawing was cleaned when it was made; here it is checked once more before it enters the page.
function drawing(source) {
  if (!source) return null;
  const root = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
  if (root.localName !== "svg") return null;
  for (const part of [root, ...root.querySelectorAll("*")]) {
    if (!ALLOWED.has(part.localName)) { part.remove(); continue; }
    for (const { name } of [...part.attributes]) {
      if (name.startsWith("on") || name.includes("href")) part.removeAttribute(name);
    }
  }
  return document.importNode(root, true);
}

// The parts of the drawing that change: nodes with their live text, lines with their two ends.
function parts(svg, script) {
  const nodes = new Map(), edges = [];
  if (!svg) return { nodes, edges };
  for (const group of svg.querySelectorAll("g.node")) {
    const id = group.id.slice(group.id.lastIndexOf("-") + 1);
    const live = script.live[id];
    const text = live && [...group.querySelectorAll("text")].find((t) => t.textContent === live.text);
    nodes.set(id, { group, text: text || null, live, state: "" });
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
    for (const id of step.nodes) {
      const text = step.shows[id] ?? script.live[id]?.text;
      if (text === undefined) continue;
      if (!shows.has(id)) shows.set(id, []);
      shows.get(id).push([i, text]);
    }
  });
  return shows;
}

function shownAt(list, frame) {
  let low = 0, high = list.length;                  // the last entry before the frame
  while (low < high) { const mid = (low + high) >> 1; if (list[mid][0] < frame) low = mid + 1; else high = mid; }
  return low ? list[low - 1][1] : null;
}

function setState(part, state) {
  if (part.state === state) return;
  part.group.classList.remove(...STATES);
  part.group.classList.add(state);
  part.state = state;
}

function sameAnswer(given, wanted) {
  const [a, b] = [given, wanted].map((t) => t.trim().replace(/[\[\]\s]/g, "").toLowerCase().replace(/−/g, "-"));
  if (a === b) return true;
  const [p, q] = [a.split(","), b.split(",")].map((l) => l.map(Number));
  const close = (x, y) => Number.isFinite(x) && Math.abs(x - y) <= 0.01 * Math.max(Math.abs(y), 1e-9);
  return a !== "" && p.length === q.length && p.every((x, i) => close(x, q[i]));
}

function controls(root) {
  const bar = make("div", "mg-bar", { role: "group", "aria-label": "player" });
  const button = (sign, label, name) => {
    const made = make("button", `mg-${name}`, { type: "button", "aria-label": label, title: label });
    made.textContent = sign;
    bar.append(made);
    return made;
  };
  const c = { bar, first: button("⏮", "first step (Home)", "first"), back: button("◀", "back (←)", "back"),
    play: button("▶", "play (Space)", "play"), next: button("▶▏", "forward (→)", "next"), last: button("⏭", "last step (End)", "last") };
  c.range = make("input", "mg-range", { type: "range", min: "0", step: "1", "aria-label": "step" });
  c.count = make("span", "mg-count");
  c.iteration = make("span", "mg-iteration");
  bar.append(c.range, c.count, c.iteration);
  c.predict = button("predict", "hide the next value and ask for it", "predict");
  c.pic = make("div", "mg-pic");
  c.say = make("div", "mg-say", { "aria-live": "polite" });
  c.formula = make("div", "mg-formula");
  c.form = make("form", "mg-ask", { hidden: "" });
  c.ask = make("label", "mg-question");
  c.answer = make("input", "mg-answer", { type: "text", autocomplete: "off", "aria-label": "your prediction" });
  c.check = make("button", "mg-check", { type: "submit" });
  c.check.textContent = "check";
  c.show = make("button", "mg-show", { type: "button" });
  c.show.textContent = "show";
  c.form.append(c.ask, c.answer, c.check, c.show);
  c.verdict = make("div", "mg-verdict", { "aria-live": "polite" });
  root.append(bar, c.pic, c.say, c.formula, c.form, c.verdict);
  return c;
}

function render({ model, el }) {
  const script = model.get("script"), steps = script.steps, total = steps.length;
  const root = make("div", "mg-player", { tabindex: "0", role: "region", "aria-label": `player: ${script.title || "graph"}` });
  const c = controls(root);
  const svg = drawing(model.get("svg"));
  if (svg) c.pic.append(svg);
  else { const words = make("pre"); words.textContent = model.get("words") || ""; c.pic.append(words); }
  const { nodes, edges } = parts(svg, script);
  const shows = timeline(script);
  let timer = null, asked = null, painted = null;
  c.range.max = String(total);
  el.append(root);

  const firstOf = (id) => script.first[id] ?? -1;
  const stateAt = (id, frame, active) => (active.has(id) ? "active" : firstOf(id) < frame ? "done" : "pending");

  function paint() {
    const begun = performance.now();
    const frame = Math.max(0, Math.min(total, model.get("frame"))), step = frame ? steps[frame - 1] : null;
    const active = new Set(step ? step.nodes : []);
    if (painted !== null && frame !== painted) { asked = asked === frame ? asked : null; }
    painted = frame;
    for (const [id, part] of nodes) {
      setState(part, stateAt(id, frame, active));
      if (!part.text) continue;
      const hidden = asked === frame && step.ask && (step.ask.node === id || active.has(id));
      const text = hidden ? "?" : shownAt(shows.get(id) || [], frame) ?? part.live.empty;
      if (part.text.textContent !== text) part.text.textContent = text;
    }
    for (const edge of edges) {
      const [a, b] = edge.ends;
      const states = [nodes.get(a).state, nodes.get(b).state];
      const both = states.every((s) => s === "active") || (states.includes("active") && !states.includes("pending") && active.has(step.nodes[0])
        && (a === step.nodes[0] || b === step.nodes[0]));
      setState(edge, states.includes("pending") ? "pending" : both ? "active" : "done");
    }
    speak(frame, step);
    root.dataset.frame = String(frame);
    root.dataset.milliseconds = String(performance.now() - begun);
  }

  function speak(frame, step) {
    const open = asked === frame && step && step.ask;
    c.range.value = String(frame);
    c.count.textContent = `${frame} of ${total}`;
    c.range.setAttribute("aria-valuetext", `step ${frame} of ${total}`);
    c.iteration.textContent = step && step.iteration !== null ? `iteration ${step.iteration}` : "";
    c.say.textContent = open ? `Step ${frame} of ${total}: what comes next?` : step ? step.text : script.opening;
    c.formula.textContent = open || !step ? "" : step.formula;
    c.form.hidden = !open;
    if (open) c.ask.textContent = step.ask.what;
    c.first.disabled = c.back.disabled = frame === 0;
    c.next.disabled = c.last.disabled = frame === total;
    c.predict.setAttribute("aria-pressed", String(Boolean(model.get("prediction"))));
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
    asked = null;
    paint();
    c.verdict.textContent = given === "" ? `It is ${ask.answer}.` : right ? `Right: ${ask.answer}.` : `Not quite: you said ${given}, it is ${ask.answer}.`;
    c.verdict.className = `mg-verdict ${given === "" ? "" : right ? "mg-right" : "mg-wrong"}`;
    root.focus({ preventScroll: true });
  }

  function stop() {
    if (timer) clearInterval(timer);
    timer = null;
    c.play.textContent = "▶";
    c.play.setAttribute("aria-label", "play (Space)");
  }

  function toggle() {
    if (timer) return stop();
    if (model.get("frame") >= total) go(0);
    c.play.textContent = "❚❚";
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
  c.form.onsubmit = (event) => { event.preventDefault(); if (asked !== null) reveal(c.answer.value); };
  c.show.onclick = () => { if (asked !== null) reveal(""); };
  c.pic.onclick = (event) => {
    const group = event.target.closest("g.node");
    const id = group && group.id.slice(group.id.lastIndexOf("-") + 1);
    if (id && id in script.first) { stop(); go(script.first[id] + 1); }
  };
  const keys = { ArrowRight: () => c.next.onclick(), ArrowLeft: () => c.back.onclick(), Home: () => c.first.onclick(),
    End: () => c.last.onclick(), " ": toggle };
  root.onkeydown = (event) => {
    const typing = event.target === c.answer, button = event.target.tagName === "BUTTON" && event.key === " ";
    if (typing || button || !(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) {
      if (typing) event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  model.on("change:frame", paint);
  model.on("change:prediction", paint);
  paint();
  return () => stop();
}

export default { render };

// The player: one drawing, class changes, never a new layout.  Data reaches the page as text and class names only.

const SLOW = 900;                                   // milliseconds between two steps while playing

// The numbers of an answer, however they are written: 1/3, −0,5, [1 2], array([1., 2.]), (2, 3), 2×3, ∞.
function numbersIn(text, single) {
  let plain = text.toLowerCase().replace(/[−–]/g, "-").replace(/∞|inf(inity)?/g, "Infinity").replace(/(\d)\s*[×x]\s*(?=\d)/g, "$1 ");
  plain = plain.replace(/\b(array|tensor|np|mg|dtype|float\d*|int\d*|bool|requires_grad)\b[=.]?/g, " ").replace(/\btrue\b/g, "1").replace(/\bfalse\b/g, "0");
  if (single) plain = plain.replace(/^\s*([-+]?\d*),(\d+)\s*$/, "$1.$2");
  const found = plain.split(/[\s,;()[\]{}|]+/).filter(Boolean).map((word) => {
    const [over, under = 1] = word.split("/");
    return word === "nan" ? word : word.endsWith("%") ? parseFloat(word) / 100 : Number(over) / Number(under);
  });
  return found.some(Number.isNaN) ? [] : found;
}

function sameAnswer(given, wanted) {
  const plain = (text) => text.replace(/\s/g, "").toLowerCase().replace(/−/g, "-");
  const right = numbersIn(wanted, true), told = numbersIn(given, right.length === 1);
  const close = (x, y) => x === y || (Number.isFinite(x) && Math.abs(x - y) <= 0.01 * Math.max(Math.abs(y), 1e-9));
  return plain(given) === plain(wanted) || (right.length > 0 && told.length === right.length && told.every((x, i) => close(x, right[i])));
}

function controls() {
  const c = { ...stage(), first: button("first", "|«", "first step (Home)"), back: button("back", "‹", "back (←)"),
    play: button("play", "play", "play (Space)"), next: button("next", "›", "forward (→)"), last: button("last", "»|", "last step (End)"),
    predict: button("predict", "predict", "predict: hide the next value and ask for it"), reveal: button("show", "show", "show the answer"),
    range: make("input", "mg-range", { type: "range", min: "0", step: "1", "aria-label": "step" }), count: make("span", "mg-count"),
    iteration: make("span", "mg-iteration"), formula: make("div", "mg-formula"),
    question: make("label", "mg-question"), verdict: make("div", "mg-verdict", { "aria-live": "polite" }),
    answer: make("input", "mg-answer", { type: "text", autocomplete: "off", "aria-label": "your prediction" }) };
  const check = make("button", "mg-check", { type: "submit", "aria-label": "check (Enter)", title: "check (Enter)" }, "check");
  c.form = make("form", "mg-ask", { hidden: "" }, c.question, c.answer, check, c.reveal);
  c.bar = make("div", "mg-bar", { role: "group", "aria-label": "player" },
    c.first, c.back, c.play, c.next, c.last, c.range, c.count, c.iteration, c.predict);
  return c;
}

function render({ model, el }) {
  const { steps, first, live, opening, title } = model.get("script"), total = steps.length;
  let frame = 0, predicting = model.get("prediction"), asked = false, timer = null;
  const c = controls(), root = make("div", "mg-player", { tabindex: "0", role: "region", "aria-label": `player: ${title || "graph"}` },
    c.bar, c.say, c.formula, c.form, c.verdict, c.pic, c.zoom.bar, c.below);
  const svg = drawing(model.get("svg")), words = document.querySelector("details");
  svg?.querySelector("desc")?.remove();             // it tells how everything ended
  const ran = (part) => !(first[nodeId(part)] >= (asked ? frame - 1 : frame));
  const name = c.show(svg, model.get("words"), (part) => !part.matches(".waiting") && ran(part), (leaf) => !predicting || ran(leaf));
  const nodes = new Map(svg ? [...svg.querySelectorAll("g.node")].map((group) => [nodeId(group), group]) : []);
  const lines = svg ? [...svg.querySelectorAll("g.edge")].filter((line) => endsOf(line).length === 2) : [];
  const texts = Object.entries(live).flatMap(([id, pairs]) => {
    const drawn = [...nodes.get(id)?.querySelectorAll("text") || []];
    return pairs.map(([now, before], place) => ({ id, before, place, at: drawn.find((text) => text.textContent === now) }));
  }).filter(({ at }) => at);
  const verdict = (text, kind) => Object.assign(c.verdict, { textContent: text, className: `mg-verdict ${kind}` });
  c.range.max = String(total);
  el.append(root);

  const mark = (group, state, all) => all.forEach((each) => group.classList.toggle(each, each === state));

  function paint() {
    const begun = performance.now(), step = steps[frame - 1], past = asked ? frame - 1 : frame;
    const secret = asked && step.ask.operator, running = secret ? [] : step?.nodes || [];
    for (const [id, group] of nodes) {
      mark(group, running.includes(id) ? "active" : first[id] >= past ? "pending" : "done", ["pending", "active", "done"]);
    }
    const shows = Object.assign({}, ...steps.slice(0, past).map((each) => each.shows));
    for (const { id, before, place, at } of texts) {
      const hidden = asked && !place && step.ask.node === id && before === "—", now = hidden ? "?" : shows[id]?.[place] ?? before;
      if (at.textContent !== now) at.textContent = now;
    }
    for (const line of lines) {
      const ends = endsOf(line), waiting = ends.some((id) => nodes.get(id)?.matches(".pending"));
      mark(line, waiting ? "waiting" : ends.includes(step?.nodes[0]) ? "running" : "still", ["waiting", "running", "still"]);
    }
    c.range.value = String(frame);
    c.count.textContent = `${frame} of ${total}`;
    c.range.setAttribute("aria-valuetext", `step ${frame} of ${total}`);
    c.iteration.textContent = step?.iteration != null ? `step ${step.iteration} of the loop` : "";
    c.say.textContent = asked ? `Step ${frame} of ${total}: what comes next?` : step ? step.text : opening;
    c.formula.textContent = asked || !step ? "" : step.formula;
    c.form.hidden = !asked;
    if (asked) c.question.textContent = step.ask.what;
    root.classList.toggle("mg-predicting", predicting);
    if (words) words.hidden = predicting;           // all steps, with their answers
    c.first.disabled = c.back.disabled = frame === 0;
    c.next.disabled = c.last.disabled = frame === total;
    c.predict.setAttribute("aria-pressed", String(predicting));
    name();
    const next = step || steps[0];                  // before anything has run, what comes first is in view
    if (svg && next && !secret) c.zoom.follow(nodes.get(next.nodes[0]));
    root.dataset.frame = String(frame);
    root.dataset.milliseconds = String(performance.now() - begun);
  }

  function go(to, ask = false) {
    frame = Math.max(0, Math.min(total, to));
    asked = Boolean(ask && predicting && steps[frame - 1].ask);
    verdict("", "");
    paint();
    if (asked) { c.answer.value = ""; c.answer.focus(); }
  }

  function reveal(given) {
    const { answer } = steps[frame - 1].ask, right = given && sameAnswer(given, answer);
    if (given && !right) { verdict(`Not quite: ${given} is not it. Try again, or press show.`, "mg-wrong"); c.answer.select(); return; }
    asked = false;
    paint();
    verdict(right ? `Right: ${answer}.` : `It is ${answer}.`, right ? "mg-right" : "");
    root.focus({ preventScroll: true });
  }

  function play(on) {
    clearInterval(timer);
    if (on && frame >= total) go(0);
    timer = on ? setInterval(() => { if (frame >= total) play(false); else if (!asked) forward(); }, SLOW) : null;
    c.play.textContent = on ? "pause" : "play";
    c.play.setAttribute("aria-label", `${on ? "pause" : "play"} (Space)`);
  }

  const forward = () => { if (frame < total) go(frame + 1, true); };
  const stopped = (act) => () => { play(false); act(); };
  c.first.onclick = stopped(() => go(0));
  c.back.onclick = stopped(() => go(frame - 1));
  c.next.onclick = stopped(forward);
  c.last.onclick = stopped(() => go(total));
  c.play.onclick = () => play(!timer);
  c.range.oninput = stopped(() => go(Number(c.range.value)));
  c.predict.onclick = () => { predicting = !predicting; asked = false; paint(); };
  c.form.onsubmit = (event) => { event.preventDefault(); if (c.answer.value.trim()) reveal(c.answer.value); };
  c.reveal.onclick = () => reveal("");
  c.pic.onclick = (event) => {
    const group = event.target.closest("g.node"), id = group && nodeId(group);
    if (id in first) { play(false); go(first[id] + 1); }
  };
  const keys = { ArrowRight: c.next.onclick, ArrowLeft: c.back.onclick, Home: c.first.onclick, End: c.last.onclick, " ": c.play.onclick };
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const typing = event.target === c.answer, pressed = event.target.tagName === "BUTTON" && event.key === " ";
    if (typing || pressed || c.zoom.key(event) || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  };
  paint();
  return () => { play(false); c.zoom.end(); };
}

// A picture that can be searched and opened.  Data reaches the page as text and class names only.
// With a kernel ("live") a click on a folded box asks for a new drawing; without one it opens where the page holds what is inside.

const WAIT = 150;                                   // milliseconds after the last letter

function counted(number, one) {
  return `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "es"}`;
}

// Names that hold the text, capitals or not; "#17" is a number and nothing longer.
function holds(name, wanted) {
  const text = name.toLowerCase();
  return wanted.startsWith("#") ? text === wanted || text.startsWith(`${wanted} `) : text.includes(wanted);
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

function render({ model, el }) {
  const live = Boolean(model.get("live")), trail = [];  // without a kernel: what was shown before each opening
  let shown = model.get("shown"), groups = new Map(), hits = [], at = -1, timer = null, asked = 0, asker = "";
  const root = make("div", "mg-player mg-explorer", { tabindex: "0", role: "region", "aria-label": `picture: ${shown.title || "graph"}` });
  const bar = make("div", "mg-bar", { role: "search" }), query = make("input", "mg-query", { type: "search", placeholder: "search (/)",
    autocomplete: "off", spellcheck: "false", "aria-label": "search for a name, an operation, or a number like #17" });
  bar.append(query);
  const next = button(bar, "next-hit", "next match (Enter)", "next"), told = make("span", "mg-count", { "aria-live": "polite" });
  bar.append(told);
  const back = button(bar, "fold-back", "undo the last opening (Backspace)", "fold back"), all = button(bar, "fold-all", "fold everything again", "fold all");
  const c = stage();
  root.append(bar, c.pic, c.zoom.bar, c.details, c.follow, c.say);
  el.append(root);

  const leads = (id) => live || (shown.opens && id in shown.opens);
  const opened = () => (live ? shown.opened : trail.length);

  function paint(message = shown.message) {
    const within = c.pic.contains(document.activeElement) && document.activeElement !== c.pic, before = asker;
    const svg = drawing(shown.svg ?? model.get("svg"));
    groups = new Map(svg ? [...svg.querySelectorAll("g.node")].map((group) => [nodeId(group), group]) : []);
    c.show(svg, shown.words || model.get("words"));
    for (const [id, words] of Object.entries(shown.folds)) asButton(groups.get(id), words);
    back.hidden = all.hidden = !Object.keys(shown.folds).some(leads) && !opened();
    back.disabled = all.disabled = !opened();
    c.say.textContent = message;
    root.removeAttribute("aria-busy");
    search(false);
    const focus = groups.get(shown.focus);
    if (focus) choose(focus);
    if (within) heir(focus, before).focus({ preventScroll: true });
    asker = "";
  }

  // What gets the focus of a box that is open now: what was looked for, the box where it stays, else the first box of its side.
  function heir(focus, opened) {
    const side = opened && c.pic.querySelector(`g.mg-fold.${opened.side}`);
    return focus || groups.get(opened && opened.id) || side || c.pic.querySelector("g.node") || root;
  }

  function asButton(group, words) {
    if (!group) return;
    group.classList.add("mg-fold");
    for (const [name, value] of Object.entries({ tabindex: "0", role: "button", "aria-label": words })) group.setAttribute(name, value);
  }

  // What is drawn is searched here; how often a text occurs inside a folded box is in the index, or known to the kernel.
  function search(tell = true) {
    const wanted = query.value.trim().toLowerCase(), found = live ? model.get("found") : { text: wanted, inside: {} };
    if (!live && wanted) {
      for (const [id, list] of Object.entries(shown.index)) found.inside[id] = list.filter((name) => holds(name, wanted)).length;
    }
    hits = [];
    for (const [id, group] of groups) {
      const here = Boolean(wanted) && holds(shown.names[id] || "", wanted), within = wanted && found.text === wanted ? found.inside[id] || 0 : 0;
      group.classList.toggle("mg-hit", here || within > 0);
      if (tell) group.classList.remove("mg-here");
      if (here || within) hits.push({ id, within });
    }
    if (tell) at = -1;
    root.classList.toggle("mg-searching", Boolean(wanted));
    count(wanted);
    if (live && wanted && tell) ask({ what: "search", text: wanted });
  }

  function count(wanted) {
    const within = hits.reduce((sum, hit) => sum + hit.within, 0), here = hits.filter((hit) => !hit.within).length;
    const more = shown.cut ? ", or more" : "";
    told.textContent = !wanted ? "" : !hits.length ? `no match${more}` :
      [here ? counted(here, "match") : "", within ? `${counted(within, "match")} in folded boxes${more}` : ""].filter(Boolean).join(", ");
    next.disabled = !hits.length;
  }

  function jump(step) {
    if (!hits.length) return;
    at = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    const hit = hits[at];
    choose(groups.get(hit.id));
    const where = `${at + 1} of ${hits.length}: ${shown.names[hit.id] || ""}`;
    if (hit.within && leads(hit.id)) open(hit.id, query.value.trim());
    else c.say.textContent = hit.within ? `${where}, with ${counted(hit.within, "match")} inside` : where;
  }

  function choose(group) {
    for (const other of groups.values()) other.classList.remove("mg-here");
    group.classList.add("mg-here");
    c.zoom.follow(group);
  }

  function ask(question) {
    asked += 1;
    model.set("ask", { ...question, number: asked });
    model.save_changes();
  }

  function open(id, text = "") {
    if (!leads(id)) { c.say.textContent = "There is too much in it for this page: it opens in a running notebook."; return; }
    c.say.textContent = "Opening …";
    root.setAttribute("aria-busy", "true");
    asker = { id, side: groups.get(id).classList.contains("fwd") ? "fwd" : "bwd" };
    if (live) ask({ what: "open", node: id, text }); else turn(id, text);
  }

  // To the drawing behind a box; what was looked for is the first match that is not folded.
  async function turn(id, text) {
    const drawings = await unpacked(model.get("drawings"));
    trail.push(shown);
    shown = drawings[shown.opens[id] - 1];
    paint();
    at = text ? hits.findIndex((hit) => !hit.within) : -1;
    if (at >= 0) choose(groups.get(hits[at].id));
  }

  function fold(what) {
    if (live) { ask({ what }); return; }
    shown = what === "all" ? trail[0] : trail.pop();
    if (what === "all") trail.length = 0;
    paint(trail.length ? "Folded back." : "Everything is folded.");
  }

  query.oninput = () => { clearTimeout(timer); timer = setTimeout(search, WAIT); };
  next.onclick = () => jump(1);
  back.onclick = () => fold("back");
  all.onclick = () => fold("all");
  c.pic.onclick = (event) => {
    const group = event.target.closest("g.mg-fold");
    if (group) open(nodeId(group));
  };
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === query, box = event.target.closest && event.target.closest("g.mg-fold");
    if (typing && event.key === "Enter") { clearTimeout(timer); if (at < 0 && !hits.length) search(); jump(event.shiftKey ? -1 : 1); }
    else if (typing && event.key === "Escape") { query.value = ""; search(); root.focus({ preventScroll: true }); }
    else if (!typing && c.zoom.key(event)) { event.stopPropagation(); return; }
    else if (typing || event.target.tagName === "BUTTON") { event.stopPropagation(); return; }
    else if (box && (event.key === "Enter" || event.key === " ")) open(nodeId(box));
    else if (event.key === "/") query.focus();
    else if (event.key === "Backspace" && opened()) fold("back");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  model.on("change:shown", () => { shown = model.get("shown"); paint(); });
  model.on("change:found", () => search(false));
  paint();
  return () => { clearTimeout(timer); c.zoom.end(); };
}

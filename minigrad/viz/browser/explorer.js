// A picture that can be searched and opened.  Data reaches the page as text and class names only.
// With a kernel ("live") a click on a folded box asks for a new drawing; without one the search says what is inside.

const WAIT = 150;                                   // milliseconds after the last letter

function counted(number, one) {
  return `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "es"}`;
}

function searchBar(root, live) {
  const bar = make("div", "mg-bar", { role: "search" });
  const c = { query: make("input", "mg-query", { type: "search", placeholder: "search (/)", autocomplete: "off", spellcheck: "false",
    "aria-label": "search for a name, an operation, or a number like #17" }) };
  const button = (name, words, label) => {
    const made = make("button", `mg-${name}`, { type: "button", "aria-label": label, title: label });
    made.textContent = words;
    bar.append(made);
    return made;
  };
  bar.append(c.query);
  c.next = button("next-hit", "next", "next match (Enter)");
  c.count = make("span", "mg-count", { "aria-live": "polite" });
  bar.append(c.count);
  c.back = button("fold-back", "fold back", "undo the last opening (Backspace)");
  c.all = button("fold-all", "fold all", "fold everything again");
  c.back.hidden = c.all.hidden = !live;
  c.pic = make("div", "mg-pic", { role: "group", "aria-label": "the picture: + and − change its size, arrow keys scroll it" });
  c.zoom = zoomable(c.pic);
  c.details = make("div", "mg-details");
  c.say = make("div", "mg-say", { "aria-live": "polite" });
  c.follow = make("div", "mg-follow", { role: "status" });
  root.append(bar, c.pic, c.zoom.bar, c.details, c.follow, c.say);
  return c;
}

// Names that hold the text, capitals or not; "#17" is a number and nothing longer.
function holds(name, wanted) {
  const text = name.toLowerCase();
  return wanted.startsWith("#") ? text === wanted || text.startsWith(`${wanted} `) : text.includes(wanted);
}

function render({ model, el }) {
  const live = Boolean(model.get("live"));
  const root = make("div", "mg-player mg-explorer", { tabindex: "0", role: "region", "aria-label": `picture: ${model.get("title") || "graph"}` });
  const c = searchBar(root, live);
  let groups = new Map(), hits = [], at = -1, timer = null, asked = 0, asker = "";
  el.append(root);

  function paint() {
    const within = c.pic.contains(document.activeElement) && document.activeElement !== c.pic, opened = asker;
    const svg = drawing(model.get("svg"));
    groups = new Map();
    c.zoom.bar.hidden = !svg;
    if (!svg) { const words = make("pre"); words.textContent = model.get("words"); c.pic.replaceChildren(words); }
    else {
      lightTwins(svg);
      readable(svg, c.details);
      followable(svg, c.follow);
      c.pic.replaceChildren(svg);
      c.zoom.show(svg);
      for (const group of svg.querySelectorAll("g.node")) groups.set(nodeId(group), group);
      for (const [id, words] of Object.entries(model.get("folds"))) asButton(groups.get(id), words);
    }
    c.back.disabled = c.all.disabled = !model.get("opened");
    c.say.textContent = model.get("message");
    root.removeAttribute("aria-busy");
    search(false);
    const focus = groups.get(model.get("focus"));
    if (focus) choose(focus);
    if (within) heir(focus, opened).focus({ preventScroll: true });
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
    const wanted = c.query.value.trim().toLowerCase();
    const names = model.get("names"), index = model.get("index");
    const inside = live ? (model.get("found").text === wanted ? model.get("found").inside : {}) : {};
    if (!live && wanted) {
      for (const [id, list] of Object.entries(index)) {
        const number = list.filter((name) => holds(name, wanted)).length;
        if (number) inside[id] = number;
      }
    }
    hits = [];
    for (const [id, group] of groups) {
      const here = Boolean(wanted) && holds(names[id] || "", wanted), within = wanted ? inside[id] || 0 : 0;
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
    const within = hits.reduce((sum, hit) => sum + hit.within, 0), shown = hits.filter((hit) => !hit.within).length;
    const more = model.get("cut") && !live ? ", or more" : "";
    c.count.textContent = !wanted ? "" : !hits.length ? `no match${more}` :
      [shown ? counted(shown, "match") : "", within ? `${counted(within, "match")} in folded boxes${more}` : ""].filter(Boolean).join(", ");
    c.next.disabled = !hits.length;
  }

  function jump(step) {
    if (!hits.length) return;
    at = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    const hit = hits[at];
    choose(groups.get(hit.id));
    const where = `${at + 1} of ${hits.length}: ${model.get("names")[hit.id] || ""}`;
    if (hit.within && live) open(hit.id, c.query.value.trim());
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
    if (!live) { c.say.textContent = "This page has no kernel: a folded box opens in a notebook."; return; }
    c.say.textContent = "Opening …";
    root.setAttribute("aria-busy", "true");
    asker = { id, side: groups.get(id).classList.contains("fwd") ? "fwd" : "bwd" };
    ask({ what: "open", node: id, text });
  }

  c.query.oninput = () => { clearTimeout(timer); timer = setTimeout(search, WAIT); };
  c.next.onclick = () => jump(1);
  c.back.onclick = () => ask({ what: "back" });
  c.all.onclick = () => ask({ what: "all" });
  c.pic.onclick = (event) => {
    const group = event.target.closest("g.mg-fold");
    if (group) open(nodeId(group));
  };
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === c.query, fold = event.target.closest && event.target.closest("g.mg-fold");
    if (typing && event.key === "Enter") { clearTimeout(timer); if (at < 0 && !hits.length) search(); jump(event.shiftKey ? -1 : 1); }
    else if (typing && event.key === "Escape") { c.query.value = ""; search(); root.focus({ preventScroll: true }); }
    else if (!typing && c.zoom.key(event)) { event.stopPropagation(); return; }
    else if (typing || event.target.tagName === "BUTTON") { event.stopPropagation(); return; }
    else if (fold && (event.key === "Enter" || event.key === " ")) open(nodeId(fold));
    else if (event.key === "/") c.query.focus();
    else if (event.key === "Backspace" && live && model.get("opened")) ask({ what: "back" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  model.on("change:drawn", paint);
  model.on("change:found", () => search(false));
  paint();
  return () => { clearTimeout(timer); c.zoom.end(); };
}

// A picture that can be searched and opened.  Data reaches the page as text and class names only.
// A click on a folded box opens it where the page holds what is inside.

const matches = (number) => `${number.toLocaleString("en")} match${number === 1 ? "" : "es"}`;

// Names that hold the text, capitals or not; "#17" is a number and nothing longer.
function holds(name, wanted) {
  const text = name.toLowerCase();
  return wanted.startsWith("#") ? text === wanted || text.startsWith(`${wanted} `) : text.includes(wanted);
}

function render({ model, el }) {
  const trail = [];  // what was shown before each opening
  let shown = model.get("shown"), groups = new Map(), hits = [], at = -1, timer = null, opening = null;
  const query = make("input", "mg-query", { type: "search", placeholder: "search (/)", autocomplete: "off", spellcheck: "false",
    "aria-label": "search for a name, an operation, or a number like #17" });
  const next = button("next-hit", "next", "next match (Enter)"), told = make("span", "mg-count", { "aria-live": "polite" });
  const back = button("fold-back", "fold back", "undo the last opening (Backspace)"), all = button("fold-all", "fold all", "fold everything again");
  const c = stage(), bar = make("div", "mg-bar", { role: "search" }, query, next, told, back, all);
  const root = make("div", "mg-player mg-explorer", { tabindex: "0", role: "region", "aria-label": `picture: ${shown.title || "graph"}` },
    bar, c.pic, c.zoom.bar, c.below, c.say);
  el.append(root);

  const leads = (id) => id in shown.opens;

  function paint(message = shown.message) {
    const within = c.pic.contains(document.activeElement) && document.activeElement !== c.pic;
    const svg = drawing(shown.svg ?? model.get("svg"));
    groups = new Map(svg ? [...svg.querySelectorAll("g.node")].map((group) => [nodeId(group), group]) : []);
    c.show(svg, shown.words || model.get("words"), undefined, undefined, model.get("arrays"));
    for (const [id, words] of Object.entries(shown.folds)) {
      groups.get(id)?.classList.add("mg-fold");
      if (groups.has(id)) dress(groups.get(id), { tabindex: "0", role: "button", "aria-label": words });
    }
    back.hidden = all.hidden = !Object.keys(shown.folds).some(leads) && !trail.length;
    back.disabled = all.disabled = !trail.length;
    c.say.textContent = message;
    root.removeAttribute("aria-busy");
    search(false);
    // The focus goes to the box where it stays, or to the first one of its side.
    const heir = groups.get(opening?.id) || c.pic.querySelector(`g.mg-fold.${opening?.side}`) || groups.values().next().value;
    if (within) (heir || root).focus({ preventScroll: true });
    opening = null;
  }

  // What is drawn is searched here; how often a text occurs inside a folded box is in the index.
  function search(anew = true) {
    const wanted = query.value.trim().toLowerCase(), inside = (id) => (shown.index[id] || []).filter((name) => holds(name, wanted)).length;
    hits = [];
    for (const [id, group] of groups) {
      const within = wanted ? inside(id) : 0, here = wanted && holds(shown.names[id] || "", wanted);
      group.classList.toggle("mg-hit", Boolean(here || within));
      if (anew) group.classList.remove("mg-here");
      if (here || within) hits.push({ id, within });
    }
    const folded = hits.reduce((sum, hit) => sum + hit.within, 0), drawn = hits.filter((hit) => !hit.within).length;
    const counts = [drawn && matches(drawn), folded && `${matches(folded)} in folded boxes`];
    told.textContent = !wanted ? "" : counts.filter(Boolean).join(", ") || "no match";
    next.disabled = !hits.length;
    root.classList.toggle("mg-searching", Boolean(wanted));
    if (anew) at = -1;
  }

  function jump(step) {
    if (!hits.length) return;
    at = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    const { id, within } = hits[at];
    choose(groups.get(id));
    if (within && leads(id)) { open(id, query.value.trim()); return; }
    c.say.textContent = `${at + 1} of ${hits.length}: ${shown.names[id] || ""}${within ? `, with ${matches(within)} inside` : ""}`;
  }

  function choose(group) {
    for (const other of groups.values()) other.classList.toggle("mg-here", other === group);
    c.zoom.follow(group);
  }

  function open(id, text = "") {
    if (!leads(id)) { c.say.textContent = "There is too much in it for this page: draw(…, expand=\"a name in it\") shows it."; return; }
    c.say.textContent = "Opening …";
    root.setAttribute("aria-busy", "true");
    opening = { id, side: groups.get(id).matches(".fwd") ? "fwd" : "bwd" };
    turn(id, text);
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
    shown = what === "all" ? trail.splice(0)[0] : trail.pop();
    paint(trail.length ? "Folded back." : "Everything is folded.");
  }

  query.oninput = () => { clearTimeout(timer); timer = setTimeout(search, 150); };  // after the last letter
  next.onclick = () => jump(1);
  back.onclick = () => fold("back");
  all.onclick = () => fold("all");
  c.pic.onclick = ({ target }) => { const box = target.closest("g.mg-fold"); if (box) open(nodeId(box)); };
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === query, box = event.target.closest("g.mg-fold");
    event.stopPropagation();
    if (typing && event.key === "Enter") { clearTimeout(timer); if (at < 0) search(); jump(event.shiftKey ? -1 : 1); }
    else if (typing && event.key === "Escape") { query.value = ""; search(); root.focus({ preventScroll: true }); }
    else if (typing || c.zoom.key(event) || event.target.tagName === "BUTTON") return;
    else if (box && (event.key === "Enter" || event.key === " ")) open(nodeId(box));
    else if (event.key === "/") query.focus();
    else if (event.key === "Backspace" && trail.length) fold("back");
    else return;
    event.preventDefault();
  };
  paint();
  return () => { clearTimeout(timer); c.zoom.end(); };
}

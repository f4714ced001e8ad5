// A picture in a page: every node is reached by keyboard and read in a panel, and its colours are those of the page.

// Words in a panel instead of tooltips; one node is in the order of tabs, arrow keys go to the nearest in their direction.
function readable(svg, panel, shows = () => true) {
  const nodes = [...svg.querySelectorAll("g.node")];
  svg.setAttribute("role", "graphics-document group");
  svg.setAttribute("tabindex", "-1");               // who listens to the focus of its parts would be a stop itself
  const name = svg.querySelector(":scope > title"); // in an attribute: a title would follow the mouse
  if (name) { svg.setAttribute("aria-label", name.textContent); svg.removeAttribute("aria-labelledby"); name.remove(); }
  for (const part of svg.querySelectorAll("g.node, g.edge, g.cluster")) {
    const title = [...part.children].find((each) => each.localName === "title");
    if (!title) continue;
    part.setAttribute("aria-label", title.textContent);
    title.remove();
    if (!part.classList.contains("node")) { part.setAttribute("aria-hidden", "true"); continue; }
    part.setAttribute("role", "graphics-symbol img");
    part.setAttribute("tabindex", part === nodes[0] ? "0" : "-1");
  }
  let pinned = null;
  const tell = (part) => {
    const [name, ...facts] = part && shows(part) ? part.getAttribute("aria-label").split("\n") : [];
    const bold = document.createElement("b");
    bold.textContent = name || "";
    panel.replaceChildren(...(name ? [bold, `  ${facts.join(" · ")}`] : []));
  };
  const choose = (part) => {
    pinned = part;
    for (const each of nodes) each.setAttribute("tabindex", each === part ? "0" : "-1");
    tell(part);
  };
  const over = (event) => tell(event.target.closest("g.node, g.edge, g.cluster") || pinned);
  svg.addEventListener("pointerover", over);
  svg.addEventListener("pointerleave", () => tell(pinned));
  svg.addEventListener("focusin", (event) => { const part = event.target.closest("g.node"); if (part) choose(part); });
  svg.addEventListener("click", (event) => event.target.closest("g.node")?.focus());
  svg.addEventListener("keydown", (event) => {
    const part = event.target.closest("g.node"), to = part && beside(nodes, part, event.key);
    if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    to.focus();
  });
  return () => tell(pinned);
}

// Follow the gradient: a leaf knows the paths by which its gradient came; what is off them fades, and the panel tells the
// factors, what each path brought and the sum.  Enter on a leaf follows, Escape lets go.
function followable(svg, panel, allowed = () => true) {
  const parts = [...svg.querySelectorAll("g.node, g.edge")];
  const nodeOf = (part) => part.id.slice(part.id.lastIndexOf("-") + 1);
  const nodesOf = (part) => (part.classList.contains("node") ? [nodeOf(part)] : [...part.classList].filter((c) => /^n\d+$/.test(c)));
  const show = (paths) => {
    const pairs = new Set(paths.flatMap(({ nodes }) => nodes.flatMap((n, i) => [n, `${n} ${nodes[i + 1]}`])));
    for (const part of parts) part.classList.toggle("mg-off", paths.length > 0 && !pairs.has(nodesOf(part).join(" ")));
  };
  const letGo = () => { show([]); panel.replaceChildren(); panel.hidden = true; };
  const make = (tag, name) => { const made = document.createElement(tag); made.className = name; return made; };
  const button = (words, act) => { const made = make("button", "mg-path"); made.type = "button"; made.textContent = words; made.onclick = act; return made; };
  const follow = (leaf) => {
    if (!allowed(nodeOf(leaf))) return;
    const told = JSON.parse(leaf.dataset.paths), head = make("strong", ""), list = make("ol", "");
    head.textContent = told.sum;
    for (const path of told.paths) {
      const item = make("li", "");
      item.append(button(`${path.gave}  by  ${path.steps.join(" → ")}`, () => show([path])));
      list.append(item);
    }
    panel.replaceChildren(head, list, button("let go (Esc)", letGo));
    panel.hidden = false;
    show(told.paths);
  };
  panel.hidden = true;
  for (const leaf of svg.querySelectorAll("g.node[data-paths]")) {
    leaf.addEventListener("click", (event) => { if (allowed(nodeOf(leaf))) { event.followed = true; follow(leaf); } });
    leaf.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      follow(leaf);
    });
  }
  const escape = (event) => { if (event.key === "Escape" && !panel.hidden) { event.stopPropagation(); letGo(); } };
  svg.addEventListener("keydown", escape);
  panel.addEventListener("keydown", escape);
}

// The nearest node in the direction of an arrow key.
function beside(nodes, from, key) {
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
  if (!way) return null;
  const middle = (part) => { const box = part.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  const [x, y] = middle(from);
  let best = null, least = Infinity;
  for (const part of nodes) {
    const [u, v] = middle(part), along = (u - x) * way[0] + (v - y) * way[1], across = Math.abs((u - x) * way[1]) + Math.abs((v - y) * way[0]);
    if (along > 4 && along + 2 * across < least) { least = along + 2 * across; best = part; }
  }
  return best;
}

// Whether what lies behind an element is dark: the page's own theme, whatever switches it.
function isDark(element) {
  const page = element.ownerDocument, canvas = page.createElement("i");
  canvas.style.backgroundColor = "Canvas"; // what the page is drawn on where nothing in it has a colour
  page.documentElement.append(canvas);
  const behind = [canvas];
  for (let at = element; at; at = at.parentElement) behind.push(at);
  const colours = behind.map((at) => (page.defaultView.getComputedStyle(at).backgroundColor.match(/[\d.]+/g) || []).map(Number));
  canvas.remove();
  const [below, ...above] = colours, opaque = ([, , b, a = 1]) => a > 0.5 && b !== undefined;
  const [r, g, b] = above.find(opaque) || below;
  return 0.299 * r + 0.587 * g + 0.114 * b < 110;
}

// The page that holds this one, where it may be asked.
function holder() {
  try { return window.frameElement; } catch { return null; }
}

// A class for dark pages, now and when the theme changes; a frame takes over the theme of the page that holds it.
function themed(element) {
  const frame = holder(), root = document.documentElement;
  const set = () => {
    const dark = isDark(frame ? frame.parentElement : element);
    if (frame) root.style.colorScheme = dark ? "dark" : "light";
    element.classList.toggle("mg-dark", dark);
  };
  const watch = new MutationObserver(() => setTimeout(set));
  for (const page of new Set([document, frame ? frame.ownerDocument : document])) {
    for (const each of [page.documentElement, page.body]) watch.observe(each, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-jp-theme-name"] });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", set);
  set();
}

// A frame is as high as what it holds.
function fitted() {
  const frame = holder(), root = document.documentElement;
  if (!frame) return;
  root.style.setProperty("--mg-high", `${Math.round(0.7 * Math.max(400, window.parent.innerHeight))}px`);
  root.classList.add("mg-framed");
  new ResizeObserver(() => { frame.style.height = `${Math.ceil(document.body.getBoundingClientRect().height) + 2}px`; }).observe(document.body);
}

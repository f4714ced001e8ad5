// A picture in a page: every node is reached by keyboard and read in a panel, and its colours are those of the page.

const dress = (part, attributes) => Object.entries(attributes).forEach(([name, value]) => part.setAttribute(name, value));

function make(tag, className, attributes = {}, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  dress(made, attributes);
  made.append(...children);
  return made;
}

const button = (name, words, label = words) => make("button", `mg-${name}`, { type: "button", "aria-label": label, title: label }, words);

// Below a picture: the words of a node, its arrays, and the paths of its gradient.
const panels = () => make("div", "", {},
  make("div", "mg-details", { role: "status" }), make("div"), make("div", "mg-follow", { role: "status" }));

// The node of the neutral graph that a group of the drawing stands for, and the two that a line joins.
const ID = /^[nfcr]+\d+$/;
const nodeId = (group) => group.id.slice(group.id.lastIndexOf("-") + 1);
const endsOf = (line) => [...line.classList].filter((name) => ID.test(name));

// What was packed for the page.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

// An array as a map of colours, orange above zero and blue below: a pointer or arrow keys tell each element.
function heatmap({ word, shape, wide, numbers }) {
  const texts = numbers.split(" "), values = texts.map(Number), last = texts.length - 1, rows = Math.ceil(texts.length / wide);
  const [across, down] = [wide, rows].map((parts) => Math.max(3, Math.min(16, Math.floor(384 / parts)), Math.ceil(24 / parts)));
  const map = make("canvas", "mg-array", { tabindex: "0", role: "slider", "aria-label": `${word} [${shape}], element by element`,
    "aria-valuemin": "0", "aria-valuemax": String(last), width: wide * across, height: rows * down });
  const pen = map.getContext("2d"), told = make("div", "mg-element");
  const most = Math.max(...values.filter(Number.isFinite).map(Math.abs)) || 1;
  const corner = (i) => [i % wide * across, Math.floor(i / wide) * down];
  const index = (i) => shape.map((length, axis) => Math.floor(i / shape.slice(axis + 1).reduce((a, b) => a * b, 1)) % length);
  let at = 0;
  const tell = (next) => {
    at = Math.max(0, Math.min(last, next));
    pen.clearRect(0, 0, map.width, map.height);
    values.forEach((value, i) => {                  // grey is not finite
      pen.fillStyle = Number.isFinite(value) ? `rgba(${value < 0 ? "0,114,178" : "213,94,0"},${Math.abs(value) / most})` : "#767676";
      pen.fillRect(...corner(i), across, down);
    });
    pen.strokeRect(...corner(at).map((n) => n + 0.5), across - 1, down - 1);
    told.textContent = `${word}[${index(at).join(", ")}] = ${texts[at]}`;
    dress(map, { "aria-valuenow": at, "aria-valuetext": told.textContent });
  };
  const under = (point, size, parts) => Math.max(0, Math.min(parts - 1, Math.floor(point / size * parts)));
  map.onpointermove = map.onpointerdown = ({ offsetX, offsetY }) =>
    tell(under(offsetY, map.clientHeight, rows) * wide + under(offsetX, map.clientWidth, wide));
  map.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide, Home: -last, End: last }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    tell(at + step);
  };
  tell(0);
  return make("div", "", {}, map, told);
}

// Words in a panel instead of tooltips; one node is in the order of tabs, arrow keys go to the nearest in their direction.
// Of a part that is not known yet the name is all that is told.  Below the words stand the arrays of the node that was picked.
function readable(svg, [words, maps], known = () => true, packed = "") {
  const arrays = packed ? unpacked(packed) : null, nodes = [...svg.querySelectorAll("g.node")], told = new Map();
  for (const title of svg.querySelectorAll("title")) {  // in an attribute: a title would follow the mouse
    told.set(title.parentNode, title.textContent.split("\n"));
    title.remove();
  }
  dress(svg, { role: "graphics-document group", "aria-label": told.get(svg)[0], tabindex: "-1" });  // no stop itself
  for (const part of svg.querySelectorAll("g.edge, g.cluster")) part.setAttribute("aria-hidden", "true");
  for (const node of nodes) node.setAttribute("role", "graphics-symbol img");
  const stop = (node) => nodes.forEach((each) => each.setAttribute("tabindex", each === node ? "0" : "-1"));
  let pinned = null;
  const tell = (part) => {
    const [name, ...facts] = part && known(part) ? told.get(part) : [""];
    words.replaceChildren(make("b", "", {}, name), facts.length ? `  ${facts.join(" · ")}` : "");
    svg.querySelectorAll(".mg-lit").forEach((each) => each.classList.remove("mg-lit"));
    const pair = part && [...part.classList].find((word) => word[0] === "t" && ID.test(word.slice(1)));
    if (pair) svg.querySelectorAll(`.${pair}`).forEach((each) => each.classList.add("mg-lit"));
  };
  const name = () => {
    for (const node of nodes) {
      const [first, ...facts] = told.get(node), label = known(node) && facts.length ? `${first}: ${facts.join("; ")}` : first;
      if (node.getAttribute("aria-label") !== label) node.setAttribute("aria-label", label);
    }
    tell(pinned);
  };
  svg.addEventListener("pointerover", (event) => tell(event.target.closest("g.node, g.edge, g.cluster") || pinned));
  svg.addEventListener("pointerleave", () => tell(pinned));
  svg.addEventListener("click", (event) => event.target.closest("g.node")?.focus());
  svg.addEventListener("focusin", (event) => {
    pinned = event.target.closest("g.node") || pinned;
    stop(pinned);
    tell(pinned);
    arrays?.then((found) => maps.replaceChildren(...(found[nodeId(pinned)] ?? []).map(heatmap)));
  });
  svg.addEventListener("keydown", (event) => {
    const part = event.target.closest("g.node"), to = part && beside(nodes, part, event.key);
    if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    to.focus();
  });
  stop(nodes[0]);
  maps.replaceChildren();
  name();
  return name;
}

// The nearest node in the direction of an arrow key.
function beside(nodes, from, key) {
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
  if (!way) return null;
  const middle = (part) => { const box = part.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  const [x, y] = middle(from);
  const far = nodes.map((part) => {
    const [u, v] = middle(part), along = (u - x) * way[0] + (v - y) * way[1];
    return along > 4 ? along + 2 * (Math.abs((u - x) * way[1]) + Math.abs((v - y) * way[0])) : Infinity;
  });
  const least = Math.min(...far);
  return least < Infinity ? nodes[far.indexOf(least)] : null;
}

// Follow the gradient: a leaf knows the paths by which its gradient came; what is off them fades, and the panel tells the
// factors, what each path brought and the sum.  Enter on a leaf follows, Escape lets go.
function followable(svg, panel, allowed = () => true) {
  const parts = [...svg.querySelectorAll("g.node, g.edge")];
  const keep = (paths) => {
    const on = new Set(paths.flatMap(({ nodes }) => nodes.flatMap((n, i) => [n, `${n} ${nodes[i + 1]}`])));
    for (const part of parts) {
      const words = part.matches(".node") ? nodeId(part) : endsOf(part).join(" ");
      part.classList.toggle("mg-off", paths.length > 0 && !on.has(words));
    }
  };
  const letGo = () => { keep([]); panel.replaceChildren(); panel.hidden = true; };
  const follow = (leaf) => {
    const { sum, paths } = JSON.parse(leaf.dataset.paths), end = button("path", "let go (Esc)");
    const each = paths.map(({ gave, steps }) => button("path", `${gave}  by  ${steps.join(" → ")}`));
    each.forEach((one, i) => { one.onclick = () => keep([paths[i]]); });
    end.onclick = letGo;
    panel.replaceChildren(make("strong", "", {}, sum), make("ol", "", {}, ...each.map((one) => make("li", "", {}, one))), end);
    panel.hidden = false;
    keep(paths);
  };
  panel.hidden = true;
  const chosen = (event) => {
    const leaf = event.target.closest("[data-paths]");
    if (!leaf || !allowed(leaf)) return;
    event.stopPropagation();                        // the player's click on a node is not meant
    follow(leaf);
  };
  svg.addEventListener("click", chosen);
  svg.addEventListener("keydown", (event) => { if (event.key === "Enter") chosen(event); });
  for (const place of [svg, panel]) {
    place.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) { event.stopPropagation(); letGo(); } });
  }
}

// A picture among others in a page, with its panels.
function figured(figure) {
  const svg = figure.querySelector("svg"), below = panels();
  figure.append(below);
  readable(svg, below.children, undefined, figure.dataset.arrays);
  followable(svg, below.lastChild);
  themed(figure);
}

// Whether what lies behind an element is dark: the page's own theme, whatever switches it.
function isDark(element) {
  const page = element.ownerDocument, canvas = page.createElement("i"), behind = [];
  canvas.style.backgroundColor = "Canvas";          // what the page is drawn on where nothing in it has a colour
  page.documentElement.append(canvas);
  for (let at = element; at; at = at.parentElement) behind.push(at);
  const colours = [...behind, canvas].map((at) => page.defaultView.getComputedStyle(at).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? []);
  canvas.remove();
  const [r, g, b] = colours.find(([, , blue, opaque = 1]) => blue !== undefined && opaque > 0.5) ?? [];  // none: it has left the page
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
  const told = { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-jp-theme-name"] };
  for (const page of [document, frame?.ownerDocument ?? document]) [page.documentElement, page.body].forEach((each) => watch.observe(each, told));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", set);
  set();
}

// What both widgets need: elements, and a drawing that is checked before it enters the page.

const ALLOWED = new Set(["svg", "g", "polygon", "polyline", "path", "ellipse", "text", "title", "desc", "style"]);

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

// The node of the neutral graph that a group of the drawing stands for.
function nodeId(group) {
  return group.id.slice(group.id.lastIndexOf("-") + 1);
}

// Twins light up together.  In a drawing that stands alone :has() does it; here a class does, because with :has() every
// change of a frame costs two to three times as much.
function lightTwins(svg) {
  for (const style of svg.querySelectorAll("style")) style.textContent = style.textContent.replace(/#\w+:has\([^{]*\{[^}]*\}/g, "");
  let lit = [];
  const light = (group) => {
    for (const each of lit) each.classList.remove("mg-lit");
    const pair = group && [...group.classList].find((name) => /^t[nfc]r?\d+$/.test(name));
    lit = pair ? [...svg.getElementsByClassName(pair)] : [];
    for (const each of lit) each.classList.add("mg-lit");
  };
  svg.addEventListener("pointerover", (event) => light(event.target.closest("g.node")));
  svg.addEventListener("pointerleave", () => light(null));
}

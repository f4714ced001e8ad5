// What both widgets need: elements, and a drawing that is checked before it enters the page.

const ALLOWED = new Set(["svg", "g", "polygon", "polyline", "path", "ellipse", "text", "title", "desc", "style"]);

function make(tag, className, attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function button(bar, name, label, words) {
  const made = make("button", `mg-${name}`, { type: "button", "aria-label": label, title: label });
  made.textContent = words;
  bar.append(made);
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

// A drawing in its window, with the panels around it; without one its words.
function stage() {
  const pic = make("div", "mg-pic", { role: "group", "aria-label": "the picture: + and − change its size, arrow keys scroll it" });
  const zoom = zoomable(pic), details = make("div", "mg-details"), follow = make("div", "mg-follow", { role: "status" });
  return {
    pic, zoom, details, follow, say: make("div", "mg-say", { "aria-live": "polite" }),
    show(svg, words, shows, allowed) {
      zoom.bar.hidden = !svg;
      if (!svg) { const text = make("pre"); text.textContent = words; pic.replaceChildren(text); return () => {}; }
      lightTwins(svg);
      pic.replaceChildren(svg);
      zoom.show(svg);
      followable(svg, follow, allowed);
      return readable(svg, details, shows);
    },
  };
}

// A drawing in a window: its words are never smaller than can be read, what does not fit is scrolled, dragged or zoomed.

const READABLE = 1.125;                             // pixels for a point of the drawing: the smallest words have 9.5
const NATURAL = 4 / 3, LARGEST = 6, SMALLEST = 0.02;
const FASTER = 1.25;                                // one press of + or −
const EDGE = 40;                                    // pixels around what is looked at

function zoomable(pic) {
  const bar = make("div", "mg-zoom", { role: "group", "aria-label": "size of the picture" });
  const out = button(bar, "out", "smaller (−, or Ctrl and the wheel)", "−"), into = button(bar, "in", "larger (+, or Ctrl and the wheel)", "+");
  const fit = button(bar, "fit", "show all of it, or words that can be read (0)", "fit");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const map = make("canvas", "mg-map", { role: "img", "aria-label": "map of the whole picture" });
  bar.prepend(map);
  let svg = null, wide = 0, high = 0, scale = 1, mode = "read", places = null, wanted = null, seen = 0, later = null;

  // The largest scale, up to the natural one, at which all of it is seen.
  function whole() {
    const most = parseFloat(getComputedStyle(pic).maxHeight) || Infinity;
    return Math.min(NATURAL, (pic.offsetWidth - 3) / wide, (most - 3) / high);
  }

  // A map of a drawing that is larger than its window: where every node is, and what of it is seen.
  function chart() {
    map.hidden = !pic.classList.contains("mg-over") || pic.scrollHeight < 1.6 * pic.clientHeight;
    if (map.hidden) return;
    if (!places) measure();
    const pen = map.getContext("2d"), ink = getComputedStyle(pic).color, part = Math.min(110 / wide, 150 / high);
    [map.width, map.height] = [Math.max(60, Math.ceil(wide * part)), Math.ceil(high * part)];
    const across = map.width / wide, down = map.height / high;
    const box = (left, top, right, bottom) => [left * across, top * down, Math.max(3, (right - left) * across), Math.max(1, (bottom - top) * down)];
    for (const [group, sides] of places) {
      pen.fillStyle = group.matches(".mg-hit, .mg-here, .active") ? ink : group.matches(".fwd") ? "#0072B2" : "#D55E00";
      pen.fillRect(...box(...sides));
    }
    const [x, y] = [pic.scrollLeft / scale, pic.scrollTop / scale];
    pen.strokeStyle = ink;
    pen.lineWidth = 2;
    pen.strokeRect(...box(x, y, x + pic.clientWidth / scale, y + pic.clientHeight / scale));
  }

  function set(next) {
    scale = Math.max(SMALLEST, Math.min(LARGEST, next));
    svg.style.width = `${wide * scale}px`;
    svg.style.height = `${high * scale}px`;
    const over = pic.scrollWidth > pic.clientWidth || pic.scrollHeight > pic.clientHeight;
    pic.classList.toggle("mg-over", over);
    if (over) pic.setAttribute("tabindex", "0"); else pic.removeAttribute("tabindex");
    fit.setAttribute("aria-pressed", String(mode === "all"));
    clearTimeout(later);
    later = setTimeout(chart, 100);                 // after the first frame
  }

  function resize() {
    if (!svg || !pic.offsetWidth) return;
    seen = pic.offsetWidth;
    if (mode !== "own") set(mode === "all" ? whole() : Math.max(READABLE, whole()));
    if (wanted) follow(wanted);
  }

  // Zoom; the point of the drawing under (x, y) of the window stays there.
  function by(factor, x = pic.clientWidth / 2, y = pic.clientHeight / 2) {
    if (!svg) return;
    const before = scale, left = (pic.scrollLeft + x) / before, top = (pic.scrollTop + y) / before;
    mode = "own";
    set(scale * factor);
    pic.scrollTo({ left: left * scale - x, top: top * scale - y, behavior: "instant" });
  }

  function toggle() {
    mode = mode === "all" ? "read" : "all";
    resize();
  }

  // Where every node stands, in points of the drawing: measured once, because measuring in every frame is slow.
  function measure() {
    const root = svg.getBoundingClientRect();
    places = new Map();
    for (const group of svg.querySelectorAll("g.node")) {
      const at = group.getBoundingClientRect();
      places.set(group, [at.left - root.left, at.top - root.top, at.right - root.left, at.bottom - root.top].map((n) => n / scale));
    }
  }

  // Scroll gently until a node is in view; nothing moves as long as it is.
  function follow(group) {
    wanted = group;
    if (!svg || !pic.classList.contains("mg-over")) return;
    if (!places) measure();
    const at = places.get(group);
    if (!at) return;
    const [left, top, right, bottom] = at.map((n) => n * scale);
    const to = { left: near(pic.scrollLeft, pic.clientWidth, left, right), top: near(pic.scrollTop, pic.clientHeight, top, bottom) };
    if (to.left !== pic.scrollLeft || to.top !== pic.scrollTop) pic.scrollTo({ ...to, behavior: still.matches ? "instant" : "smooth" });
  }

  function near(now, room, from, to) {
    return from >= now + EDGE && to <= now + room - EDGE ? now : Math.max(0, (from + to - room) / 2);
  }

  out.onclick = () => by(1 / FASTER);
  into.onclick = () => by(FASTER);
  fit.onclick = toggle;
  pic.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;   // without them the page scrolls
    event.preventDefault();
    const box = pic.getBoundingClientRect();
    by(Math.exp(-event.deltaY / (event.deltaMode ? 20 : 400)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  dragged(pic);
  pinched(pic, by);
  pic.addEventListener("scroll", () => requestAnimationFrame(chart), { passive: true });
  map.onpointerdown = map.onpointermove = (event) => {
    if (!event.buttons) return;
    const box = map.getBoundingClientRect(), x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
    pic.scrollTo({ left: x * wide * scale - pic.clientWidth / 2, top: y * high * scale - pic.clientHeight / 2, behavior: "instant" });
  };
  const watch = new ResizeObserver(() => { if (pic.offsetWidth !== seen) resize(); });
  watch.observe(pic);

  const keys = { "+": () => by(FASTER), "=": () => by(FASTER), "-": () => by(1 / FASTER), "0": toggle };
  return {
    bar,
    follow,
    show(drawn) {
      svg = drawn;
      places = wanted = null;
      ({ width: wide, height: high } = svg.viewBox.baseVal);
      svg.style.maxWidth = "none";
      resize();
    },
    // Whether a key was for the window: its own keys, and those that scroll it while it has the focus.
    key(event) {
      if (event.key in keys) { keys[event.key](); event.preventDefault(); return true; }
      return event.target === pic && /^(Arrow|Page|Home|End)/.test(event.key);
    },
    end: () => { clearTimeout(later); watch.disconnect(); },
  };
}

// Two fingers change the size of the drawing, not of the page; one finger scrolls it.
function pinched(pic, by) {
  const fingers = new Map();
  const apart = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
  let before = 0;
  pic.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, event);
    before = fingers.size === 2 ? apart() : 0;
  });
  pic.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event);
    if (fingers.size !== 2 || !before) return;
    const [a, b] = [...fingers.values()], box = pic.getBoundingClientRect(), now = apart();
    by(now / before, (a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top);
    before = now;
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) pic.addEventListener(end, (event) => fingers.delete(event.pointerId));
}

// Drag with the mouse; a finger scrolls by itself.  A drag is no click on a node.
function dragged(pic) {
  let from = null, moved = false;
  pic.addEventListener("pointerdown", (event) => {
    moved = false;
    if (event.button || event.pointerType !== "mouse" || !pic.classList.contains("mg-over")) return;
    from = { x: event.clientX, y: event.clientY, left: pic.scrollLeft, top: pic.scrollTop };
  });
  pic.addEventListener("pointermove", (event) => {
    if (!from) return;
    const x = event.clientX - from.x, y = event.clientY - from.y;
    if (!moved && Math.abs(x) + Math.abs(y) < 5) return;
    if (!moved) pic.setPointerCapture(event.pointerId);
    moved = true;
    pic.classList.add("mg-dragged");
    pic.scrollTo({ left: from.left - x, top: from.top - y, behavior: "instant" });
  });
  pic.addEventListener("selectstart", (event) => { if (from) event.preventDefault(); });
  const drop = () => { from = null; pic.classList.remove("mg-dragged"); };
  pic.addEventListener("pointerup", drop);
  pic.addEventListener("pointercancel", drop);
  pic.addEventListener("click", (event) => { if (moved) event.stopImmediatePropagation(); moved = false; }, true);
}

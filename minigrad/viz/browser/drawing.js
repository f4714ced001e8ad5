// A drawing in a window: its words are never smaller than can be read, what does not fit is scrolled, dragged or zoomed.

const READABLE = 1.125;                             // pixels for a point of the drawing: the smallest words have 9.5
const NATURAL = 4 / 3, LARGEST = 6, SMALLEST = 0.02;
const FASTER = 1.25;                                // one press of + or −
const EDGE = 40;                                    // pixels around what is looked at

const drawing = (source) => (source ? document.importNode(new DOMParser().parseFromString(source, "image/svg+xml").documentElement, true) : null);

// The drawing in its window, with the panels around it; without one its words.
function stage() {
  const pic = make("div", "mg-pic", { role: "group", "aria-label": "the picture: + and − change its size, arrow keys scroll it" });
  const zoom = zoomable(pic), below = panels();
  return {
    pic, zoom, below, say: make("div", "mg-say", { "aria-live": "polite" }),
    show(svg, words, known, allowed, arrays) {
      zoom.bar.hidden = !svg;
      if (!svg) { pic.replaceChildren(make("pre", "", {}, words)); return () => {}; }
      // With :has(), which lights twins where no script runs, every change of a frame costs two to three times as much.
      for (const style of svg.querySelectorAll("style")) style.textContent = style.textContent.replace(/#\w+:has\([^{]*\{[^}]*\}/g, "");
      pic.replaceChildren(svg);
      zoom.show(svg);
      followable(svg, below.lastChild, allowed);
      return readable(svg, below.children, known, arrays);
    },
  };
}

function zoomable(pic) {
  const map = make("canvas", "mg-map", { role: "img", "aria-label": "map of the whole picture" });
  const less = button("out", "−", "smaller (−, or Ctrl and the wheel)"), more = button("in", "+", "larger (+, or Ctrl and the wheel)");
  const fit = button("fit", "fit", "show all of it, or words that can be read (0)");
  const bar = make("div", "mg-zoom", { role: "group", "aria-label": "size of the picture" }, map, less, more, fit);
  let svg = null, wide = 0, high = 0, scale = 1, mode = "read", places = null, wanted = null, seen = 0;

  const jump = (left, top) => pic.scrollTo({ left, top, behavior: "instant" });

  // The largest scale, up to the natural one, at which all of it is seen.
  function whole() {
    const most = parseFloat(getComputedStyle(pic).maxHeight) || Infinity;
    return Math.min(NATURAL, (pic.offsetWidth - 3) / wide, (most - 3) / high);
  }

  // Where every node stands, in points of the drawing: measured once, because measuring in every frame is slow.
  function placed() {
    const root = svg.getBoundingClientRect();
    places ??= new Map([...svg.querySelectorAll("g.node")].map((group) => {
      const at = group.getBoundingClientRect();
      return [group, [at.left - root.left, at.top - root.top, at.width, at.height].map((n) => n / scale)];
    }));
    return places;
  }

  // A map of a drawing that is larger than its window: where every node is, and what of it is seen.
  function chart() {
    map.hidden = !pic.classList.contains("mg-over") || pic.scrollHeight < 1.6 * pic.clientHeight;
    if (map.hidden) return;
    const pen = map.getContext("2d"), ink = getComputedStyle(pic).color, part = Math.min(110 / wide, 150 / high);
    [map.width, map.height] = [Math.max(60, wide * part), high * part];
    const across = map.width / wide;
    for (const [group, [left, top, width, height]] of placed()) {
      pen.fillStyle = group.matches(".mg-hit, .mg-here, .active") ? ink : group.matches(".fwd") ? "#0072B2" : "#D55E00";
      pen.fillRect(left * across, top * part, Math.max(3, width * across), Math.max(1, height * part));
    }
    pen.strokeStyle = ink;
    pen.strokeRect(...[pic.scrollLeft * across, pic.scrollTop * part, pic.clientWidth * across, pic.clientHeight * part].map((n) => n / scale));
  }

  function set(next) {
    scale = Math.max(SMALLEST, Math.min(LARGEST, next));
    Object.assign(svg.style, { width: `${wide * scale}px`, height: `${high * scale}px` });
    const over = pic.scrollWidth > pic.clientWidth || pic.scrollHeight > pic.clientHeight;
    pic.classList.toggle("mg-over", over);
    if (over) pic.setAttribute("tabindex", "0"); else pic.removeAttribute("tabindex");
    fit.setAttribute("aria-pressed", String(mode === "all"));
    setTimeout(chart, 100);                         // after the first frame
  }

  function resize() {
    if (!svg || !pic.offsetWidth) return;
    seen = pic.offsetWidth;
    if (mode !== "own") set(mode === "all" ? whole() : Math.max(READABLE, whole()));
    if (wanted) follow(wanted);
  }

  // Zoom; the point of the drawing under (x, y) of the page stays there.
  function by(factor, x, y) {
    if (!svg) return;
    const box = pic.getBoundingClientRect(), before = scale;
    const [right, down] = x === undefined ? [pic.clientWidth / 2, pic.clientHeight / 2] : [x - box.left, y - box.top];
    const left = pic.scrollLeft + right, top = pic.scrollTop + down;
    mode = "own";
    set(scale * factor);
    jump(left * scale / before - right, top * scale / before - down);
  }

  // Scroll gently until a node is in view; nothing moves as long as it is.
  function follow(group) {
    wanted = group;
    if (!svg || !pic.classList.contains("mg-over") || !placed().has(group)) return;
    const [left, top, width, height] = placed().get(group).map((n) => n * scale);
    const near = (now, room, from, long) =>
      (from >= now + EDGE && from + long <= now + room - EDGE ? now : Math.max(0, from + (long - room) / 2));
    pic.scrollTo({ left: near(pic.scrollLeft, pic.clientWidth, left, width), top: near(pic.scrollTop, pic.clientHeight, top, height) });
  }

  const toggle = () => { mode = mode === "all" ? "read" : "all"; resize(); };
  const keys = { "+": () => by(FASTER), "=": () => by(FASTER), "-": () => by(1 / FASTER), "0": toggle };
  [more.onclick, less.onclick, fit.onclick] = [keys["+"], keys["-"], toggle];
  pic.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;   // without them the page scrolls
    event.preventDefault();
    by(Math.exp(-event.deltaY / (event.deltaMode ? 20 : 400)), event.clientX, event.clientY);
  }, { passive: false });
  dragged(pic, jump);
  pinched(pic, by);
  pic.addEventListener("scroll", () => requestAnimationFrame(chart), { passive: true });
  map.onpointerdown = map.onpointermove = ({ buttons, offsetX, offsetY }) => {
    if (buttons) jump(offsetX / map.offsetWidth * wide * scale - pic.clientWidth / 2, offsetY / map.offsetHeight * high * scale - pic.clientHeight / 2);
  };
  const watch = new ResizeObserver(() => { if (pic.offsetWidth !== seen) resize(); });
  watch.observe(pic);
  return {
    bar,
    follow,
    show(drawn) {
      svg = drawn;
      places = wanted = null;
      ({ width: wide, height: high } = svg.viewBox.baseVal);
      resize();
    },
    // Whether a key was for the window: its own keys, and those that scroll it while it has the focus.
    key(event) {
      if (event.key in keys) { keys[event.key](); event.preventDefault(); return true; }
      return event.target === pic && /^(Arrow|Page|Home|End)/.test(event.key);
    },
    end: () => watch.disconnect(),
  };
}

// Two fingers change the size of the drawing, not of the page; one finger scrolls it.
function pinched(pic, by) {
  let before = 0;
  pic.addEventListener("touchmove", ({ touches: [a, b] }) => {
    const now = b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0;
    if (before && now) by(now / before, (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
    before = now;
  }, { passive: true });
  pic.addEventListener("touchend", () => { before = 0; });
}

// Drag with the mouse; a finger scrolls by itself.  A drag is no click on a node.
function dragged(pic, jump) {
  let from = null, moved = false;
  pic.addEventListener("pointerdown", (event) => {
    moved = false;
    const mine = !event.button && event.pointerType === "mouse" && pic.classList.contains("mg-over");
    from = mine ? { x: event.clientX + pic.scrollLeft, y: event.clientY + pic.scrollTop, event } : null;
  });
  pic.addEventListener("pointermove", (event) => {
    if (!from) return;
    moved ||= Math.hypot(event.clientX - from.event.clientX, event.clientY - from.event.clientY) > 5;
    if (!moved) return;
    pic.setPointerCapture(event.pointerId);
    pic.classList.add("mg-dragged");
    jump(from.x - event.clientX, from.y - event.clientY);
  });
  for (const end of ["pointerup", "pointercancel"]) pic.addEventListener(end, () => { from = null; pic.classList.remove("mg-dragged"); });
  pic.addEventListener("click", (event) => { if (moved) event.stopImmediatePropagation(); moved = false; }, true);
}

// A frame is as high as what it holds.
function fitted() {
  const frame = holder(), root = document.documentElement;
  if (!frame) return;
  root.style.setProperty("--mg-high", `${Math.round(0.7 * Math.max(400, window.parent.innerHeight))}px`);
  root.classList.add("mg-framed");
  new ResizeObserver(() => { frame.style.height = `${Math.ceil(document.body.getBoundingClientRect().height) + 2}px`; }).observe(document.body);
}

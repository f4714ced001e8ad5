// Says what a browser that keeps nothing, or has no service workers, means for the reader; gives sliders their keys and notebooks their room.
// The page runs there, too: what JupyterLite would store stays in memory, as long as the tab.

{
  class Memory {
    #items = new Map();
    get length() { return this.#items.size; }
    key(index) { return [...this.#items.keys()][index] ?? null; }
    getItem(key) { return this.#items.get(String(key)) ?? null; }
    setItem(key, value) { this.#items.set(String(key), String(value)); }
    removeItem(key) { this.#items.delete(String(key)); }
    clear() { this.#items.clear(); }
  }

  const sentences = [];
  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      window[name].getItem("");
    } catch {
      Object.defineProperty(window, name, { value: new Memory() });
      Object.defineProperty(window, "indexedDB", { value: undefined });  // refused as well: JupyterLite looks for it first
      sentences[0] = "This browser keeps nothing for this page: your work is gone with the tab, unless you download it (File > Download).";
    }
  }
  if (!sentences.length && !navigator.serviceWorker) {
    sentences.push("This page has no service workers here (a private window, or an address without https): Python is fetched again each time.");
  }

  // the arrow keys belong to a slider that has the focus, not to JupyterLite's cells
  addEventListener("focusin", ({ target }) => {
    if (target.matches(".noUi-handle")) target.dataset.lmSuppressShortcuts = "true";
  });

  // in a narrow window the notebook has the room, until the reader opens the list of files; JupyterLite opens it when it likes
  if (innerWidth < 800) {
    const waiting = setInterval(() => {
      const shell = window.jupyterapp?.shell;
      if (shell?.currentWidget?.context && !shell.leftCollapsed) shell.collapseLeft();
    }, 100);
    addEventListener("pointerdown", () => clearInterval(waiting), { capture: true, once: true });
  }

  if (sentences.length) addEventListener("DOMContentLoaded", () => {
    const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
    const notice = make("dialog", { id: "minigrad-notice" });
    notice.style = "position: fixed; inset: auto 1rem 1rem auto; z-index: 1000; max-width: 24rem; font: 0.9rem/1.45 Verdana, sans-serif";
    for (const text of sentences) notice.append(make("p", { textContent: text }));
    notice.append(make("button", { textContent: "I see", onclick: () => notice.remove() }));
    document.body.append(notice);
    notice.show();
  });
}

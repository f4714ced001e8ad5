// Python for the course in a browser: JupyterLite's kernel loads this file in the place of Pyodide,
// and gets Pyodide with the course's packages in it, and a module that lays out its pictures.
// A classic script of a worker: not every browser imports modules there.

self.loadPyodide = async (options) => {
  const here = options.indexURL;
  const read = async (name) => (await fetch(new URL(name, here))).json();
  const [site, lock] = await Promise.all([read("site.json"), read("pyodide-lock.json")]);
  const base = new URL(site.pyodide, here);
  for (const entry of Object.values(lock.packages)) {
    entry.file_name = new URL(entry.file_name, entry.file_name.includes("/") ? here : base).href;
  }
  const lockFileURL = URL.createObjectURL(new Blob([JSON.stringify(lock)]));
  importScripts(new URL("viz-global.js", here), new URL("pyodide.js", base)); // sets Viz, loadPyodide
  const stdLibURL = new URL("python_stdlib.zip", here).href;
  const settings = { ...options, indexURL: base.href, lockFileURL, stdLibURL, packages: site.packages };
  const [pyodide, viz] = await Promise.all([self.loadPyodide(settings), Viz.instance()]);
  const render = (source, format) => viz.render(source, { format }).output;
  pyodide.registerJsModule("minigrad_viz", { render });
  bringPlots(pyodide);
  // imported before the learner's files are mounted: a search among those is slow
  pyodide.runPython("import numpy, minigrad.course.explore, minigrad.viz");
  pyodide.runPython(GO_ON);
  return pyodide;
};

// The course draws its plots with `figure`; matplotlib comes when a cell takes that name.
function bringPlots(pyodide) {
  const load = pyodide.loadPackagesFromImports;
  pyodide.loadPackagesFromImports = async (code, ...rest) => {
    if (/\bimport\b.*\bfigure\b|\bplots?\b/.test(code)) {
      await pyodide.loadPackage("matplotlib");
      // which says on first use that it looks for fonts
      pyodide.runPython("import logging; logging.getLogger('matplotlib.font_manager').setLevel('ERROR')");
    }
    return load(code, ...rest);
  };
}

// A cell that may raise does not end "Run All": JupyterLite ends it with every reply that says error,
// so here the error is sent as an output, and the reply to such a cell says ok.
const GO_ON = `
import js
from pyodide.ffi import to_js
from pyodide_kernel.kernel import PyodideKernel

run = PyodideKernel.run

async def run_on(self, code):
    reply = await run(self, code)
    parent = self._parent_header
    if reply["status"] == "error" and parent["content"].get("stop_on_error") is False:
        bundle = {key: reply[key] for key in ("ename", "evalue", "traceback")}
        message = {"parentHeader": parent["header"], "bundle": bundle, "type": "execute_error"}
        sent = {"_kernelMessage": message}
        js.postMessage(to_js(sent, dict_converter=js.Object.fromEntries))
        reply = {"status": "ok", "payload": reply.get("payload", [])}
    return reply

PyodideKernel.run = run_on
`;

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
  const settings = { ...options, indexURL: base.href, lockFileURL, packages: site.packages };
  const [pyodide, viz] = await Promise.all([self.loadPyodide(settings), Viz.instance()]);
  const render = (source, format) => viz.render(source, { format }).output;
  pyodide.registerJsModule("minigrad_viz", { render });
  bringPlots(pyodide);
  // imported before the learner's files are mounted: a search among those is slow
  pyodide.runPython("import numpy, minigrad.course.explore, minigrad.viz");
  return pyodide;
};

// The course draws its plots with `figure`; matplotlib comes when a cell takes that name.
function bringPlots(pyodide) {
  const load = pyodide.loadPackagesFromImports;
  pyodide.loadPackagesFromImports = async (code, ...rest) => {
    if (/\bimport\b.*\bfigure\b|\bplots?\b/.test(code)) await pyodide.loadPackage("matplotlib");
    return load(code, ...rest);
  };
}

// node compile.js PYODIDE FOLDER: Pyodide's own Python compiles the packages in the folders of FOLDER.
// The sources of ours stay, beside the compiled modules; of the others Python needs none.

const [release, root] = process.argv.slice(2);

require(`${release}/pyodide.js`).loadPyodide().then(({ FS, runPython }) => {
  FS.mkdirTree("/modules");
  FS.mount(FS.filesystems.NODEFS, { root }, "/modules");
  runPython(`
import os
from compileall import compile_dir
from py_compile import PycInvalidationMode

for name in os.listdir("/modules"):
    folder = f"/modules/{name}"
    compile_dir(
        folder, quiet=2, legacy=name != "minigrad",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH, stripdir=folder,
        prependdir="/lib/python312.zip" if name == "python" else "/lib/python3.12/site-packages",
    )
`);
});

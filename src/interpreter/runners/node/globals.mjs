// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What cells find beside node's globals: `require`, `module`, `exports`, and the function behind
// `import`. All of them look from the current directory, as a script there would.

import Module, { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

import { IMPORT } from "./imports.mjs";
import { outside } from "./scopes.mjs";

const here = () => path.join(process.cwd(), "cell.js");

function byDirectory(make) {
  let directory;
  let made;
  return () => {
    const now = process.cwd();
    if (directory !== now) [directory, made] = [now, make()];
    return made;
  };
}

/** Lets `require` find what `npm install -g` put beside this node, and in Debian's places. */
function addGlobalFolders() {
  const prefix = path.dirname(path.dirname(process.execPath));
  const folders = [prefix, "/usr/local", "/usr"].map((root) => path.join(root, "lib", "node_modules"));
  const before = process.env.NODE_PATH;
  process.env.NODE_PATH = [before, ...new Set(folders)].filter(Boolean).join(path.delimiter);
  Module._initPaths();
  if (before === undefined) delete process.env.NODE_PATH;
  else process.env.NODE_PATH = before;
}

export function installGlobals() {
  addGlobalFolders();
  const cell = new Module("cell");
  const requireHere = byDirectory(() => {
    const found = createRequire(here());
    // `if (require.main === module) main()` is meant to run.
    Object.defineProperty(found, "main", { value: cell, configurable: true, writable: true });
    return found;
  });
  const importHere = byDirectory(
    () =>
      new vm.Script("(name, options) => import(name, options)", {
        filename: here(),
        importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      }).runInThisContext(),
  );

  async function importModule(name, options) {
    try {
      return await importHere()(name, options);
    } catch (error) {
      if (error?.code !== "ERR_MODULE_NOT_FOUND" || /^(?:[./]|\w+:)/.test(name)) throw error;
      let file;
      try {
        file = requireHere().resolve(name);
      } catch {
        throw error;
      }
      // Module loaders do not look into the global folders; `require` does.
      return await importHere()(pathToFileURL(file).href, options);
    }
  }

  const define = (name, property) => Object.defineProperty(globalThis, name, { configurable: true, ...property });
  // Whoever else imports the module waits for the same load: it belongs to no run.
  define(IMPORT, { value: (name, options) => outside(() => importModule(name, options)) });
  define("require", {
    get: requireHere,
    set: (value) => define("require", { value, writable: true }),
  });
  define("module", { value: cell, writable: true });
  define("exports", { value: cell.exports, writable: true });
}

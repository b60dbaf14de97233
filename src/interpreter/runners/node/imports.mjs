// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// `import` declarations and calls in cells. Cells are scripts, because only scripts share their
// variables, and V8 knows neither in an evaluated script. V8 itself is the parser here: it reports
// where the next declaration is, and says of a word `import` whether it is a call.

const IDENTIFIER = "[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*";
const STRING = "\"(?:[^\"\\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\\n]|\\\\.)*'";
const GAP = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const NAME = new RegExp(IDENTIFIER, "uy");
const TEXT = new RegExp(STRING, "y");
// A cell with more calls than this is generated; then every one counts as a call.
const MAX_CALLS = 500;

export const IMPORT = "__alcove_import";

const OUTSIDE_MODULE = "Cannot use import statement outside a module";
const META_OUTSIDE_MODULE = "Cannot use 'import.meta' outside a module";

class Reader {
  constructor(code, at) {
    this.code = code;
    this.at = at;
    this.skip();
  }

  skip() {
    GAP.lastIndex = this.at;
    this.at += GAP.exec(this.code)[0].length;
  }

  /** The text that `pattern` (sticky) or the literal `pattern` matches here, or undefined. */
  take(pattern) {
    let found;
    if (typeof pattern === "string") {
      found = this.code.startsWith(pattern, this.at) ? pattern : undefined;
    } else {
      pattern.lastIndex = this.at;
      found = pattern.exec(this.code)?.[0];
    }
    if (found === undefined) return undefined;
    this.at += found.length;
    this.skip();
    return found;
  }
}

/** `{ a, b as c, "d" as e }` as the inside of a destructuring pattern; undefined if it is not one. */
function readNamed(reader) {
  const parts = [];
  while (!reader.take("}")) {
    const name = reader.take(NAME) ?? reader.take(TEXT);
    if (name === undefined) return undefined;
    let local = name;
    if (reader.take(/as\b/y)) local = reader.take(NAME);
    if (local === undefined) return undefined;
    parts.push(local === name ? name : `${name}: ${local}`);
    if (!reader.take(",") && reader.code[reader.at] !== "}") return undefined;
  }
  return parts;
}

/** Reads the declaration whose `import` begins at `start`: {text, end}, or undefined. */
function readDeclaration(code, start) {
  const reader = new Reader(code, start + "import".length);
  const wanted = [];
  let namespace;
  let source = reader.take(TEXT);
  if (source === undefined) {
    const byDefault = reader.take(NAME);
    if (byDefault !== undefined) wanted.push(`default: ${byDefault}`);
    if (byDefault === undefined || reader.take(",")) {
      if (reader.take("*")) {
        if (!reader.take(/as\b/y)) return undefined;
        namespace = reader.take(NAME);
        if (namespace === undefined) return undefined;
      } else {
        const named = reader.take("{") ? readNamed(reader) : undefined;
        if (named === undefined) return undefined;
        wanted.push(...named);
      }
    }
    if (!reader.take(/from\b/y)) return undefined;
    source = reader.take(TEXT);
    if (source === undefined) return undefined;
  }
  const attributes = reader.take(/with\b/y) ? reader.take(/\{[^}]*\}/y) : undefined;
  // Blanks behind the declaration belong to what follows; they may hold the line break that ends it.
  const end = reader.code[reader.at] === ";" ? reader.at + 1 : reader.at;
  const call = `await ${IMPORT}(${source}${attributes ? `, {with: ${attributes}}` : ""})`;
  let text = `void (${call});`;
  if (namespace !== undefined) {
    text = `const ${namespace} = ${call};`;
    if (wanted.length) text += ` const {${wanted}} = ${namespace};`;
  } else if (wanted.length) {
    text = `const {${wanted.join(", ")}} = ${call};`;
  }
  return { text, end };
}

/** Puts `text` in the place of [start, end) without moving the lines behind it. */
function splice(code, start, end, text) {
  const breaks = code.slice(start, end).replace(/[^\n]/g, "");
  return code.slice(0, start) + text + breaks + code.slice(end);
}

/**
 * Rewrites `code` for evaluation as a script. `compile(code)` returns undefined, or V8's
 * {message, offset} of the first error. Returns the code unchanged from where it is not understood.
 */
export function rewriteImports(code, compile) {
  if (!/\b(?:import|export)\b/.test(code)) return code;
  for (let last = -1; ; ) {
    const error = compile(code);
    if (error === undefined || error.offset <= last) break;
    let replaced;
    if (error.message === OUTSIDE_MODULE) {
      replaced = readDeclaration(code, error.offset);
    } else if (error.message === "Unexpected token 'export'") {
      const keyword = /export(?:\s+default)?\b/y;
      keyword.lastIndex = error.offset;
      const found = keyword.exec(code)?.[0];
      // What is exported is declared all the same; a list of names has nothing to declare.
      replaced = found && { text: "", end: error.offset + found.length };
    }
    if (!replaced) break;
    last = error.offset - 1;
    code = splice(code, error.offset, replaced.end, replaced.text);
  }
  return rewriteCalls(code, compile);
}

function rewriteCalls(code, compile) {
  const calls = [...code.matchAll(/(?<![\w$.#]|\\)import(?=(?:\s|\/\*[^]*?\*\/)*\()/g)].map((match) => match.index);
  // From the end, so that the places before stay where they are.
  for (const at of calls.reverse()) {
    const behind = at + "import".length;
    const isCall = () => {
      const error = compile(`${code.slice(0, at)}import.meta${code.slice(behind)}`);
      return error?.message === META_OUTSIDE_MODULE && error.offset >= at && error.offset <= behind + ".meta".length;
    };
    if (calls.length > MAX_CALLS || isCall()) code = code.slice(0, at) + IMPORT + code.slice(behind);
  }
  return code;
}

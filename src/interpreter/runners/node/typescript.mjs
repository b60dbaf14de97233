// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// TypeScript to JavaScript by node's own means. Types become blanks where that is enough, so lines
// stay what they are; enums, namespaces and the like are compiled, with a map of the lines.

import { SourceMap, stripTypeScriptTypes } from "node:module";

/** {code, lineOf} or undefined if this is not TypeScript; `lineOf` leads back to the cell's lines. */
export function stripTypes(code) {
  try {
    return { code: stripTypeScriptTypes(code, { mode: "strip" }), lineOf: (line) => line };
  } catch {
    // Not TypeScript, or more than types.
  }
  try {
    const compiled = stripTypeScriptTypes(code, { mode: "transform", sourceMap: true });
    const [text, encoded] = compiled.split(/\n\/\/# sourceMappingURL=[^,]*,/);
    const map = new SourceMap(JSON.parse(Buffer.from(encoded, "base64").toString()));
    return { code: text, lineOf: (line, column) => (map.findEntry(line - 1, column - 1).originalLine ?? line - 1) + 1 };
  } catch {
    return undefined;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a cell threw, as the name, value and traceback of an `error` frame.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import { CellSyntaxError, Terminated } from "./evaluator.mjs";

const OWN = path.dirname(fileURLToPath(import.meta.url));

/** Reads a property of anything; a cell may throw objects whose properties throw. */
export function read(value, key) {
  try {
    const found = value?.[key];
    return typeof found === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

function show(value) {
  try {
    return inspect(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The stack down to the cell: what called the cell is this runner. */
function ownStack(stack) {
  const lines = stack.split("\n");
  const end = lines.findIndex((line) => /^\s+at /.test(line) && (line.includes("node:inspector") || line.includes(OWN)));
  return (end < 0 ? lines : lines.slice(0, end)).join("\n");
}

/** `lineOf` maps lines of the compiled cell to those that its author wrote. */
export function describeError(thrown, cell) {
  if (thrown instanceof Terminated) {
    return { name: "KeyboardInterrupt", value: "the execution was interrupted", traceback: ["KeyboardInterrupt: the execution was interrupted"] };
  }
  if (thrown instanceof CellSyntaxError) {
    const { message, line, column } = thrown;
    const source = cell.code.split("\n")[line - 1] ?? "";
    const place = `${cell.name}:${line}\n${source}\n${source.slice(0, column).replace(/[^\t]/g, " ")}^\n`;
    return { name: "SyntaxError", value: message, traceback: [`${place}SyntaxError: ${message}`] };
  }
  const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
  const name = (isObject && read(thrown, "name")) || typeof thrown;
  const value = (isObject && read(thrown, "message")) ?? show(thrown);
  const stack = (isObject && read(thrown, "stack")) || `Uncaught ${show(thrown)}`;
  const place = new RegExp(`(?<=\\b${cell.name}:)(\\d+):(\\d+)`, "g");
  const original = (all, line, column) => `${cell.lineOf(Number(line), Number(column))}:${column}`;
  return { name, value: value === false ? show(thrown) : value, traceback: [ownStack(stack).replace(place, original)] };
}

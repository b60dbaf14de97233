// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Evaluates cells through V8's inspector in its console's mode: variables live on, may be declared
// again by a later cell (and after a failed one), and `await` works at the top level.

import { Session } from "node:inspector";
import { isPromise } from "node:util/types";
import { promiseHooks } from "node:v8";

import { rewriteImports } from "./imports.mjs";
import { stripTypes } from "./typescript.mjs";

const GROUP = "cell";
const HEAD = "(async()=>{";
// A cell's promise has the value inside an object, in case it is a promise itself.
const REPL_RESULT = ".repl_result";

/** The cell's code is not JavaScript; nothing of it has run. */
export class CellSyntaxError {
  constructor(message, line, column) {
    Object.assign(this, { message, line, column });
  }
}

/** The run was stopped from outside. */
export class Terminated {}

const pending = new Set();

function syntaxErrorOf({ exceptionDetails: details, result }) {
  const message = result.description.split("\n")[0].replace(/^SyntaxError: /, "");
  return new CellSyntaxError(message, details.lineNumber + 1, details.columnNumber);
}

export class Evaluator {
  #session = new Session();
  #typesFirst;

  constructor(language) {
    this.#session.connect();
    // `new Set<string>([])` is JavaScript, too: comparisons. In TypeScript it never means those.
    this.#typesFirst = language === "typescript";
    // Takes long the first time, and an interrupt must not come amid the load.
    if (this.#typesFirst) stripTypes("");
  }

  /**
   * Resolves to the value of the last expression, promises awaited; rejects with what the cell
   * threw, a CellSyntaxError or Terminated. All that the code starts is in the scope. `onLines` gets
   * the way back to the cell's line numbers.
   */
  async evaluate(code, name, scope, onLines) {
    const asIs = () => this.#run(code, name, scope);
    const withoutTypes = async () => {
      const stripped = stripTypes(code);
      if (!stripped || stripped.code === code) return undefined;
      onLines(stripped.lineOf);
      const outcome = await this.#run(stripped.code, name, scope);
      const error = outcome.syntaxError;
      if (error) error.line = stripped.lineOf(error.line, error.column + 1);
      return outcome;
    };
    let outcome;
    for (const attempt of this.#typesFirst ? [withoutTypes, asIs] : [asIs, withoutTypes]) {
      const found = await attempt();
      // What the first attempt had to say against the cell is about its own language.
      if (found && !found.syntaxError) outcome = found;
      outcome ??= found;
      if (outcome && !outcome.syntaxError) break;
    }
    if (outcome.syntaxError) throw outcome.syntaxError;
    if (outcome.failed) throw outcome.value;
    return isPromise(outcome.value) ? await outcome.value : outcome.value;
  }

  async #run(code, name, scope) {
    const script = rewriteImports(code, (text) => this.#compile(text));
    const command = { expression: `${script}\n//# sourceURL=${name}`, replMode: true, silent: true, objectGroup: GROUP };
    let failure, answer, promise;
    const take = (error, result) => {
      [failure, answer] = [error, result];
      // The inspector's handles would keep the value.
      this.#session.post("Runtime.releaseObjectGroup", { objectGroup: GROUP });
    };
    // The first promise that is made is the cell's own.
    const stop = promiseHooks.onInit((made) => (promise ??= made));
    try {
      scope.run(() => this.#session.post("Runtime.evaluate", command, take));
    } finally {
      stop();
    }
    if (failure) throw new Terminated();
    if (!promise) return { syntaxError: syntaxErrorOf(answer) };
    // Kept until it is settled, which may be never: the inspector waits for it too, and its word that
    // the promise was collected comes amid the collection, which ends the process.
    pending.add(promise);
    try {
      return { failed: false, value: (await promise)[REPL_RESULT] };
    } catch (value) {
      return { failed: true, value };
    } finally {
      pending.delete(promise);
    }
  }

  /** The first syntax error of a cell, as {message, offset}; nothing is run. */
  #compile(code) {
    let found;
    this.#session.post("Runtime.enable");
    this.#session.post(
      "Runtime.compileScript",
      { expression: `${HEAD}${code}\n})`, sourceURL: "", persistScript: false },
      (error, answer) => (found = answer?.exceptionDetails),
    );
    this.#session.post("Runtime.disable");
    if (!found) return undefined;
    let offset = -HEAD.length + found.columnNumber;
    if (found.lineNumber > 0) {
      offset = found.columnNumber;
      for (let line = 0, at = 0; line < found.lineNumber; line++) {
        at = code.indexOf("\n", at) + 1;
        if (line === found.lineNumber - 1) offset += at;
      }
    }
    const message = (found.exception?.description ?? found.text).split("\n")[0].replace(/^(?:Uncaught )?SyntaxError: /, "");
    return { message, offset };
  }
}

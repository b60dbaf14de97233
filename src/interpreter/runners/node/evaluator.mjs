// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Evaluates cells through V8's inspector in its console's mode: variables live on, may be declared
// again by a later cell (and after a failed one), and `await` works at the top level.

import { Session } from "node:inspector";
import { isPromise } from "node:util/types";

import { rewriteImports } from "./imports.mjs";
import { stripTypes } from "./typescript.mjs";

const VALUES = "__alcove_values";
const GROUP = "cell";
const HEAD = "(async()=>{";

/** The cell's code is not JavaScript; nothing of it has run. */
export class CellSyntaxError {
  constructor(message, line, column) {
    Object.assign(this, { message, line, column });
  }
}

/** The run was stopped from outside. */
export class Terminated {}

export class Evaluator {
  #session = new Session();
  #values = [];

  constructor() {
    this.#session.connect();
    const values = this.#values;
    const put = (value) => {
      values.push(value);
    };
    Object.defineProperty(globalThis, VALUES, { value: put });
  }

  /**
   * Resolves to the value of the last expression, promises awaited; rejects with what the cell
   * threw, a CellSyntaxError or Terminated. `onLines` gets the way back to the cell's line numbers.
   */
  async evaluate(code, name, onLines) {
    let script = rewriteImports(code, (text) => this.#compile(text));
    let outcome = await this.#run(script, name);
    if (outcome.syntaxError) {
      const stripped = stripTypes(code);
      if (stripped && stripped.code !== code) {
        onLines(stripped.lineOf);
        script = rewriteImports(stripped.code, (text) => this.#compile(text));
        const second = await this.#run(script, name);
        if (!second.syntaxError) outcome = second;
      }
    }
    if (outcome.syntaxError) throw outcome.syntaxError;
    if (outcome.failed) throw outcome.value;
    return isPromise(outcome.value) ? await outcome.value : outcome.value;
  }

  /** Forgets the inspector's handles on the last cell's values. */
  release() {
    this.#session.post("Runtime.releaseObjectGroup", { objectGroup: GROUP });
  }

  #post(method, parameters) {
    return new Promise((resolve, reject) => {
      this.#session.post(method, parameters, (error, answer) => (error ? reject(error) : resolve(answer)));
    });
  }

  async #run(script, name) {
    let answer;
    try {
      answer = await this.#post("Runtime.evaluate", {
        expression: `${script}\n//# sourceURL=${name}`,
        replMode: true,
        awaitPromise: true,
        silent: true,
        objectGroup: GROUP,
      });
    } catch (error) {
      if (/Promise was collected/.test(error?.message)) {
        return { failed: true, value: new Error("the cell waits for a promise that nothing can settle") };
      }
      throw new Terminated();
    }
    const details = answer.exceptionDetails;
    // Only errors of the compiler know their script.
    if (details?.scriptId && answer.result.className === "SyntaxError") {
      const message = answer.result.description.split("\n")[0].replace(/^SyntaxError: /, "");
      return { syntaxError: new CellSyntaxError(message, details.lineNumber + 1, details.columnNumber) };
    }
    return { failed: details !== undefined, value: this.#valueOf(answer.result) };
  }

  /** The value itself, for which the inspector gave a description. */
  #valueOf({ objectId, value, unserializableValue, type }) {
    if (objectId === undefined && unserializableValue === undefined) return type === "undefined" ? undefined : value;
    const argument = objectId ? { objectId } : { unserializableValue };
    this.#session.post("Runtime.evaluate", { expression: VALUES, objectGroup: GROUP }, (error, answer) => {
      if (error) throw new Terminated();
      this.#session.post("Runtime.callFunctionOn", {
        functionDeclaration: "function (value) { this(value) }",
        objectId: answer.result.objectId,
        arguments: [argument],
        silent: true,
      });
    });
    return this.#values.pop();
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

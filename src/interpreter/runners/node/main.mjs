// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The JavaScript and TypeScript runner: one process per context, driven over fd 3.

import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

import { describeError, read } from "./errors.mjs";
import { Evaluator, Terminated } from "./evaluator.mjs";
import { Frames } from "./frames.mjs";
import { installGlobals } from "./globals.mjs";
import { Interrupts } from "./interrupts.mjs";
import { installOutput, report } from "./output.mjs";
import { installScopes, Scope } from "./scopes.mjs";

const PROTOCOL_FD = 3;
const SIGNAL_MS = 200;

/** Sets the run's variables; the returned function puts back what was there. */
function setVariables(variables) {
  const before = Object.keys(variables).map((name) => [name, process.env[name]]);
  for (const [name, value] of Object.entries(variables)) process.env[name] = value;
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}

class Runner {
  #evaluator;
  #interrupts = new Interrupts();
  #frames;
  #count = 0;
  #waiting = [];
  #busy = false;
  #interrupt; // ends the run under way

  async start(language) {
    this.#evaluator = new Evaluator(language);
    installOutput();
    installGlobals();
    installScopes();
    // Tasks in the background fail by themselves; the context lives on.
    process.on("uncaughtException", (error) => this.#reportBackground("Uncaught exception", error));
    process.on("unhandledRejection", (error) => this.#reportBackground("Unhandled rejection", error));
    await this.#interrupts.start(() => this.#interrupt?.());
    this.#frames = new Frames(PROTOCOL_FD, (frame) => {
      if (frame.type !== "execute") return;
      this.#waiting.push(frame);
      this.#next();
    });
    this.#frames.send({ type: "ready" });
  }

  #reportBackground(what, thrown) {
    const { traceback } = describeError(thrown, { code: "", name: "cell", lineOf: (line) => line });
    report(`${what}: ${traceback.join("")}\n`);
  }

  #next() {
    if (this.#busy || this.#waiting.length === 0) return;
    this.#busy = true;
    const frame = this.#waiting.shift();
    this.#interrupts.beginRun(frame.after_interrupt, () => this.#execute(frame));
  }

  // Any step here may be terminated by an interrupt that comes late. It is repeated then, and the
  // first outcome holds.
  #execute({ id, code, env }) {
    const send = (type, fields) => this.#frames.send({ type, id, ...fields });
    send("started", { execution_count: this.#count + 1 });
    if (code.trim() === "") return this.#end(() => send("done"));
    this.#count++;
    const cell = { code, name: `cell-${this.#count}`, lineOf: (line) => line };
    const restore = setVariables(env ?? {});
    const scope = new Scope();
    let outcome;
    let over = false;
    const finish = (found) => {
      if (over) return;
      outcome ??= found;
      restore();
      this.#end(() => {
        over = true;
        if (outcome.length > 0) send(...outcome);
        send("done");
      });
    };
    this.#interrupt = () => {
      scope.stop();
      finish(["error", describeError(new Terminated(), cell)]);
    };
    this.#evaluate(cell, scope).then(finish);
  }

  #end(sendLast) {
    this.#interrupts.endRun(() => {
      this.#interrupt = undefined;
      sendLast();
      this.#busy = false;
      this.#next();
    });
  }

  /** The last frame of the cell's run: its type and fields, or nothing. */
  async #evaluate(cell, scope) {
    try {
      const value = await this.#evaluator.evaluate(cell.code, cell.name, scope, (lineOf) => (cell.lineOf = lineOf));
      return value === undefined ? [] : ["result", { data: { "text/plain": inspect(value) }, main: true }];
    } catch (thrown) {
      // The interrupt that stopped it is on its way, and ends the run.
      if (thrown instanceof Terminated) return await new Promise(() => {});
      // A child that the same signal ended may be noticed before the signal is.
      if (read(thrown, "signal") === "SIGINT") await sleep(SIGNAL_MS);
      return ["error", describeError(thrown, cell)];
    }
  }
}

// Cells see the arguments of a program that has none.
await new Runner().start(process.argv.splice(2)[0]);

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The JavaScript and TypeScript runner: one process per context, driven over fd 3.

import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

import { describeError, read } from "./errors.mjs";
import { Evaluator, Terminated } from "./evaluator.mjs";
import { Frames } from "./frames.mjs";
import { installGlobals } from "./globals.mjs";
import { watchInterrupts } from "./interrupts.mjs";
import { installOutput, report } from "./output.mjs";
import { Timers } from "./timers.mjs";

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
  #evaluator = new Evaluator();
  #timers = new Timers();
  #frames;
  #count = 0;
  #queue = Promise.resolve();
  #interrupt; // ends the run under way

  async start() {
    installOutput();
    installGlobals();
    this.#timers.install();
    // Tasks in the background fail by themselves; the context lives on.
    process.on("uncaughtException", (error) => this.#reportBackground("Uncaught exception", error));
    process.on("unhandledRejection", (error) => this.#reportBackground("Unhandled rejection", error));
    await watchInterrupts(() => this.#interrupt?.());
    this.#frames = new Frames(PROTOCOL_FD, (frame) => {
      if (frame.type === "execute") this.#queue = this.#queue.then(() => this.#execute(frame));
    });
    this.#frames.send({ type: "ready" });
  }

  #reportBackground(what, thrown) {
    const { traceback } = describeError(thrown, { code: "", name: "cell", lineOf: (line) => line });
    report(`${what}: ${traceback.join("")}\n`);
  }

  async #execute({ id, code, env }) {
    const send = (type, fields) => this.#frames.send({ type, id, ...fields });
    const isEmpty = code.trim() === "";
    send("started", { execution_count: this.#count + 1 });
    if (!isEmpty) {
      this.#count++;
      const restore = setVariables(env ?? {});
      this.#timers.begin();
      const [type, fields] = await this.#outcomeOf({ code, name: `cell-${this.#count}`, lineOf: (line) => line });
      restore();
      if (type) send(type, fields);
      this.#evaluator.release();
    }
    send("done");
  }

  /** The last frame of the cell's run: its type and fields, or nothing. */
  async #outcomeOf(cell) {
    const interrupted = new Promise((resolve) => {
      this.#interrupt = () => {
        this.#timers.clear();
        resolve(["error", describeError(new Terminated(), cell)]);
      };
    });
    const outcome = await Promise.race([interrupted, this.#evaluate(cell, interrupted)]);
    this.#interrupt = undefined;
    return outcome;
  }

  async #evaluate(cell, interrupted) {
    try {
      const value = await this.#evaluator.evaluate(cell.code, cell.name, (lineOf) => (cell.lineOf = lineOf));
      return value === undefined ? [] : ["result", { data: { "text/plain": inspect(value) }, main: true }];
    } catch (thrown) {
      // The interrupt that stopped it is on its way; it must not hit the next run.
      if (thrown instanceof Terminated) return await interrupted;
      // A child that the same signal ended may be noticed before the signal is.
      if (read(thrown, "signal") === "SIGINT") await Promise.race([interrupted, sleep(SIGNAL_MS)]);
      return ["error", describeError(thrown, cell)];
    }
  }
}

await new Runner().start();

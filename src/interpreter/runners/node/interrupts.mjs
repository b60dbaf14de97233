// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// SIGINT for code that may be busy. A signal handler of node's runs only between callbacks, so a
// second thread waits for the signal (interrupt_thread.mjs). It asks this thread to end its run and,
// as long as nobody answers, terminates what runs here through the inspector. A termination may come
// late: it hits whatever runs then, and V8 drops all pending promise reactions with it. So what
// follows a run is done by callbacks that the other thread repeats, and a run is over only when the
// thread has said that no termination is under way.

import { clearTimeout, setTimeout } from "node:timers";
import { Worker } from "node:worker_threads";

// What the two threads share: numbers of interrupts, and whether a cell runs.
export const BEGUN = 0;
export const ANSWERED = 1;
export const ENDED = 2;
export const RUNNING = 3;

// A signal that was sent is here sooner, or was lost.
const PATIENCE_MS = 1000;

export class Interrupts {
  #shared = new Int32Array(new SharedArrayBuffer(16));
  #onInterrupt;
  #over = 0; // the last interrupt that nothing follows
  #before = 0; // the last one before the current run
  #continue = () => {};

  /** Calls `onInterrupt` on this thread for every SIGINT, once or more, when the busy code has been stopped. */
  start(onInterrupt) {
    this.#onInterrupt = onInterrupt;
    // Until the thread is there, a signal must not end the process.
    process.on("SIGINT", () => {});
    const thread = new Worker(new URL("./interrupt_thread.mjs", import.meta.url), {
      workerData: this.#shared,
      env: {},
      execArgv: [],
      stdout: false,
      stderr: false,
    });
    thread.unref();
    return new Promise((resolve) => {
      thread.on("message", (message) => {
        if (message === "armed") resolve();
        else this.#take(message);
      });
    });
  }

  /** Calls `start` once no interrupt can hit the run that it starts, but those that come from then on. */
  beginRun(isOnItsWay, start) {
    const begin = () => {
      this.#before = this.#begun();
      Atomics.store(this.#shared, RUNNING, 1);
      start();
    };
    if (!isOnItsWay || this.#begun() > this.#before) return this.#whenOver(begin);
    this.#continue = () => this.#over > this.#before && this.#finishWaiting(timer, begin);
    const timer = setTimeout(() => this.#whenOver(begin), PATIENCE_MS);
  }

  /** Calls `then` once nothing that stops code is under way, perhaps again after it was stopped itself. */
  endRun(then) {
    Atomics.store(this.#shared, RUNNING, 0);
    this.#whenOver(then);
  }

  #begun() {
    return Atomics.load(this.#shared, BEGUN);
  }

  #whenOver(then) {
    this.#continue = () => this.#over >= this.#begun() && this.#finishWaiting(undefined, then);
    this.#continue();
  }

  #finishWaiting(timer, then) {
    clearTimeout(timer);
    this.#continue = () => {};
    then();
  }

  // Each message is repeated until it is answered: what terminates busy code may hit this as well.
  #take({ number, over }) {
    if (over) {
      this.#over = Math.max(this.#over, number);
      this.#continue();
    } else {
      this.#onInterrupt();
    }
    const place = over ? ENDED : ANSWERED;
    Atomics.store(this.#shared, place, Math.max(Atomics.load(this.#shared, place), number));
    Atomics.notify(this.#shared, place);
  }
}

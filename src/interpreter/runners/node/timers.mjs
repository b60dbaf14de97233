// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Timers that a run starts end with it when it is interrupted: a loop that sleeps between its turns
// has no other place where it could be stopped.

import { promisify } from "node:util";

const PRUNE_AT = 4096;

export class Timers {
  #current = new Set();
  #pruneAt = PRUNE_AT;

  install() {
    for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
      const start = globalThis[name];
      const timers = this;
      const wrapped = {
        [name](...parameters) {
          const timer = start(...parameters);
          timers.#add(timer);
          return timer;
        },
      }[name];
      const promised = start[promisify.custom];
      if (promised) Object.defineProperty(wrapped, promisify.custom, { value: promised });
      Object.defineProperty(globalThis, name, { value: wrapped, configurable: true, writable: true, enumerable: true });
    }
  }

  /** A new run begins; what earlier ones started goes on. */
  begin() {
    this.#current.clear();
    this.#pruneAt = PRUNE_AT;
  }

  clear() {
    for (const timer of this.#current) {
      clearTimeout(timer);
      clearImmediate(timer);
    }
    this.#current.clear();
  }

  #add(timer) {
    this.#current.add(timer);
    if (this.#current.size < this.#pruneAt) return;
    for (const one of this.#current) if (one._destroyed) this.#current.delete(one);
    this.#pruneAt = Math.max(PRUNE_AT, 2 * this.#current.size);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a run has started belongs to it, through all that it awaits, and ends with it when it is
// interrupted: timers are cleared, and code behind an `await` is terminated when it would go on.
// What earlier runs started goes on.

import { AsyncLocalStorage } from "node:async_hooks";
import { Session } from "node:inspector";
import { promisify } from "node:util";
import { promiseHooks } from "node:v8";

const PRUNE_AT = 4096;

const scopes = new AsyncLocalStorage();
let anyStopped = false;

export class Scope {
  #timers = new Set();
  #pruneAt = PRUNE_AT;
  isStopped = false;

  run(action) {
    return scopes.run(this, action);
  }

  stop() {
    this.isStopped = true;
    anyStopped = true;
    for (const timer of this.#timers) {
      clearTimeout(timer);
      clearImmediate(timer);
    }
    this.#timers.clear();
  }

  add(timer) {
    this.#timers.add(timer);
    if (this.#timers.size < this.#pruneAt) return;
    for (const one of this.#timers) if (one._destroyed) this.#timers.delete(one);
    this.#pruneAt = Math.max(PRUNE_AT, 2 * this.#timers.size);
  }
}

/** For work that other runs may share: no interrupt stops it, but a stopped run never hears of its end. */
export function outside(action) {
  const scope = scopes.getStore();
  const heard = (settle) => (value) => scope?.isStopped || settle(value);
  return new Promise((resolve, reject) => scopes.exit(() => action().then(heard(resolve), heard(reject))));
}

function watchTimers() {
  for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
    const start = globalThis[name];
    const wrapped = {
      [name](...parameters) {
        const timer = start(...parameters);
        const scope = scopes.getStore();
        if (scope?.isStopped) clearTimeout(timer), clearImmediate(timer);
        else scope?.add(timer);
        return timer;
      },
    }[name];
    const promised = start[promisify.custom];
    if (promised) Object.defineProperty(wrapped, promisify.custom, { value: promised });
    Object.defineProperty(globalThis, name, { value: wrapped, configurable: true, writable: true, enumerable: true });
  }
}

/** Before the first cell: V8 does not announce an `await` that began without the hook. */
export function installScopes() {
  watchTimers();
  const session = new Session();
  session.connect();
  promiseHooks.createHook({
    before() {
      if (!anyStopped || !scopes.getStore()?.isStopped) return;
      session.post("Runtime.terminateExecution");
      // It takes effect where code is called or goes back: here, and not in the cell.
      for (let i = 0; i < 1e6; i++);
    },
  });
}

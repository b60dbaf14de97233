// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The thread that waits for SIGINT. Node delivers signals to JavaScript on the main thread only;
// a script with `breakOnSigint` is the one thing that a signal stops on any thread.

import fs from "node:fs";
import { Session } from "node:inspector";
import vm from "node:vm";
import { parentPort, workerData as shared } from "node:worker_threads";

import { ANSWERED, BEGUN, ENDED, RUNNING } from "./interrupts.mjs";

const PATIENCE_MS = 40;
// Between runs what is busy is the work of a timer, or this machine.
const IDLE_ROUNDS = 12;
const never = new Int32Array(new SharedArrayBuffer(4));

function terminateMain() {
  const session = new Session();
  // Not kept open: a process with a session waits for it at its end.
  session.connectToMainThread();
  session.post("Runtime.terminateExecution");
  session.disconnect();
}

/** All processes below `pid`. */
function descendants(pid, found = new Set()) {
  try {
    for (const thread of fs.readdirSync(`/proc/${pid}/task`)) {
      const children = fs.readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8");
      for (const child of children.split(" ").filter(Boolean).map(Number)) {
        if (found.has(child)) continue;
        found.add(child);
        descendants(child, found);
      }
    }
  } catch {
    // It has ended, or this kernel does not list children.
  }
  return found;
}

/** A child that began after the signal is waited for by a call that nothing else ends. */
function interruptChildren() {
  for (const pid of descendants(process.pid)) {
    try {
      process.kill(pid, "SIGINT");
    } catch {
      // It has ended.
    }
  }
}

/** Says it until the main thread has answered. `meanwhile` is done before each repetition. */
function say(message, place, meanwhile) {
  parentPort.postMessage(message);
  for (let value; (value = Atomics.load(shared, place)) < message.number; ) {
    if (Atomics.wait(shared, place, value, PATIENCE_MS) !== "timed-out") continue;
    meanwhile();
    parentPort.postMessage(message);
  }
}

let count = 0;

function interruptMain() {
  const number = ++count;
  Atomics.store(shared, BEGUN, number);
  let rounds = 0;
  say({ number }, ANSWERED, () => {
    if (!Atomics.load(shared, RUNNING) && ++rounds < IDLE_ROUNDS) return;
    terminateMain();
    interruptChildren();
  });
  say({ number, over: true }, ENDED, () => {});
}

const NAME = "__alcove_guard";
// Node puts back the signal's default, the end of the process, when the last script ends, and a
// signal between two scripts ends the one around them. On a busy machine that happens twice in a row,
// but not so often.
const GUARDS = 8;
const guard = new vm.Script(`${NAME}()`);

let armed = false;
let inside = 0; // how many scripts there are around what is run next

function waitForSignal() {
  // Only inside scripts: before, a signal would be lost.
  if (!armed) parentPort.postMessage("armed");
  armed = true;
  Atomics.wait(never, 0, 0);
}

/** Scripts inside each other: a signal stops the innermost, and what it means is done in those around it. */
function standGuard() {
  const depth = inside;
  for (;;) {
    try {
      inside = depth + 1;
      guard.runInThisContext({ breakOnSigint: true });
    } catch {
      interruptMain();
    }
  }
}

globalThis[NAME] = () => (inside < GUARDS ? standGuard() : waitForSignal());
standGuard();

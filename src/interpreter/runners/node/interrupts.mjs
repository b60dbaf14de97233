// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// SIGINT for code that may be busy. A signal handler of node's runs only between callbacks, so a
// second thread waits for the signal (interrupt_thread.mjs). It asks this thread to end its run and,
// as long as nobody answers, terminates what runs here through the inspector.

import { Worker } from "node:worker_threads";

/** Calls `onInterrupt` on this thread for every SIGINT, after the busy code has been stopped. */
export function watchInterrupts(onInterrupt) {
  const answered = new Int32Array(new SharedArrayBuffer(4));
  // Until the thread is there, a signal must not end the process.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  const thread = new Worker(new URL("./interrupt_thread.mjs", import.meta.url), {
    workerData: answered,
    env: {},
    execArgv: [],
    stdout: false,
    stderr: false,
  });
  thread.unref();
  return new Promise((resolve) => {
    thread.on("message", (message) => {
      if (message === "armed") {
        resolve();
        return;
      }
      Atomics.store(answered, 0, 1);
      Atomics.notify(answered, 0);
      onInterrupt();
    });
  });
}

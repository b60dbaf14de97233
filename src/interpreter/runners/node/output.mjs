// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// stdout and stderr of the cells: every write is in the pipe when the call returns, so that order
// is kept between `console.log`, child processes and the end of the run, and a reader that is slow
// slows the cell down instead of filling memory.

import { Console } from "node:console";
import fs from "node:fs";
import { Writable } from "node:stream";

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Writes all of it; a cell may have closed the descriptor or made it non-blocking. */
function writeAll(fd, bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") return;
      Atomics.wait(PAUSE, 0, 0, 1);
    }
  }
}

class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: true, write: (bytes, encoding, done) => (writeAll(fd, bytes), done()) });
    this.fd = fd;
    this._isStdio = true;
  }

  // Programs end what they pipe into; the next cell still needs it.
  _final(done) {
    done();
  }

  destroy() {
    return this;
  }

  end(data, encoding, done) {
    if (data !== undefined && data !== null && typeof data !== "function") this.write(data, encoding);
    const last = [data, encoding, done].find((value) => typeof value === "function");
    if (last) process.nextTick(last);
    return this;
  }
}

export function installOutput() {
  const stdout = new Output(1);
  const stderr = new Output(2);
  for (const [name, stream] of Object.entries({ stdout, stderr })) {
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
  }
  // A console of our own: node's would also hand every argument to the inspector, which keeps them.
  const own = new Console({ stdout, stderr, colorMode: false });
  Object.defineProperty(own, "Console", { value: Console, configurable: true, writable: true });
  Object.defineProperty(globalThis, "console", { value: own, configurable: true, writable: true });
}

export const report = (text) => writeAll(2, Buffer.from(text));

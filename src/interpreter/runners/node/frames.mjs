// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The interpreter's socket: 4 bytes of length, then one JSON object (RUNNER protocol).

import net from "node:net";

const MAX_FRAME = 256 * 1024 * 1024;
// Room for the JSON around a text, and for escapes.
const MAX_TEXT = 32 * 1024 * 1024;

/** Texts are valid Unicode, and no value is so long that the frame would be refused. */
function clean(key, value) {
  if (typeof value !== "string") return value;
  const text = value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}... (cut: ${value.length} characters)` : value;
  return text.toWellFormed();
}

export class Frames {
  #socket;
  #chunks = [];
  #size = 0;

  constructor(fd, onFrame) {
    this.#socket = new net.Socket({ fd, readable: true, writable: true });
    this.#socket.on("data", (chunk) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      for (let frame; (frame = this.#take()) !== undefined; ) onFrame(frame);
    });
    // No exit handler of the cells may delay the end: the context is gone.
    const end = () => process.kill(process.pid, "SIGKILL");
    this.#socket.on("end", end);
    this.#socket.on("error", end);
    this.#socket.on("close", end);
  }

  send(frame) {
    const body = Buffer.from(JSON.stringify(frame, clean));
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    this.#socket.write(Buffer.concat([head, body]));
  }

  #take() {
    if (this.#size < 4) return undefined;
    if (this.#chunks.length > 1 && this.#chunks[0].length < 4) this.#join();
    const length = this.#chunks[0].readUInt32BE(0);
    if (length > MAX_FRAME) throw new RangeError(`a frame of ${length} bytes`);
    if (this.#size < 4 + length) return undefined;
    this.#join();
    const all = this.#chunks[0];
    this.#chunks = [all.subarray(4 + length)];
    this.#size = this.#chunks[0].length;
    return JSON.parse(all.toString("utf8", 4, 4 + length));
  }

  #join() {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
  }
}

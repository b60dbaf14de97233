// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;

/** The interpreter's socket: 4 bytes of length, then one JSON object. */
class Frames {
  private static final int MAX_FRAME = 256 << 20;
  private final DataInputStream in;
  private final OutputStream out;

  Frames(InputStream in, OutputStream out) {
    this.in = new DataInputStream(new BufferedInputStream(in));
    this.out = out;
  }

  void readInto(BlockingQueue<Map<String, Object>> queue) {
    Thread reader = new Thread(() -> {
      try {
        for (;;) {
          int length = in.readInt();
          if (length < 0 || length > MAX_FRAME) throw new IOException("a frame of " + length + " bytes");
          queue.add(Json.parse(new String(in.readNBytes(length), StandardCharsets.UTF_8)));
        }
      } catch (Exception ended) {
        // The context is gone; nothing of the cells may delay the end.
        Runtime.getRuntime().halt(0);
      }
    }, "alcove-frames");
    reader.setDaemon(true);
    reader.start();
  }

  synchronized void send(Map<String, Object> frame) {
    byte[] body = Json.write(frame).getBytes(StandardCharsets.UTF_8);
    try {
      out.write(ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).array());
    } catch (IOException closed) {
      Runtime.getRuntime().halt(0);
    }
  }
}

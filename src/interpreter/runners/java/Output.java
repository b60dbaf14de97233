// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * System.out and System.err. During a run each write is an event of its own, as clients expect of
 * Java (a line and its line break are two writes); a run that writes much gets its writes merged.
 * Between runs, output goes to the pipes as that of all other languages.
 */
class Output {
  private static final int SEPARATE_WRITES = 200;
  private static final int MAX_PENDING = 16 << 10;
  private static final int MERGE_MS = 20;
  private final Frames frames;
  private final StringBuilder pending = new StringBuilder();
  private String pendingName;
  private Object run;
  private int writes;

  Output(Frames frames) {
    this.frames = frames;
    Thread flusher = new Thread(() -> {
      for (;;) {
        try {
          Thread.sleep(MERGE_MS);
          synchronized (this) {
            while (pending.length() == 0) wait();
            flush();
          }
        } catch (InterruptedException ignored) {
          // Nobody has a reason to.
        }
      }
    }, "alcove-output");
    flusher.setDaemon(true);
    flusher.start();
  }

  void install() {
    System.setOut(printer("stdout", FileDescriptor.out));
    System.setErr(printer("stderr", FileDescriptor.err));
  }

  private PrintStream printer(String name, FileDescriptor fd) {
    OutputStream pipe = new FileOutputStream(fd);
    CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPLACE);
    OutputStream sink = new OutputStream() {
      private ByteBuffer rest = ByteBuffer.allocate(0);

      @Override
      public void write(int one) throws IOException {
        write(new byte[] {(byte) one}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int from, int length) throws IOException {
        synchronized (Output.this) {
          if (run == null) {
            pipe.write(bytes, from, length);
            return;
          }
          ByteBuffer all = ByteBuffer.allocate(rest.remaining() + length).put(rest).put(bytes, from, length).flip();
          CharBuffer text = CharBuffer.allocate(all.remaining() + 1);
          decoder.decode(all, text, false);
          rest = all;
          if (text.flip().hasRemaining()) add(name, text.toString());
        }
      }
    };
    // A subclass, because PrintStream itself would write a line and its line break at once.
    return new PrintStream(sink, true, StandardCharsets.UTF_8) {
      @Override
      public PrintStream format(String format, Object... values) {
        print(String.format(format, values));
        return this;
      }

      @Override
      public PrintStream format(Locale locale, String format, Object... values) {
        print(String.format(locale, format, values));
        return this;
      }

      @Override
      public void close() {
        // The next cell needs it.
        flush();
      }
    };
  }

  synchronized void begin(Object id) {
    run = id;
    writes = 0;
  }

  synchronized void end() {
    flush();
    run = null;
  }

  private void add(String name, String text) {
    if (!name.equals(pendingName)) flush();
    pendingName = name;
    pending.append(text);
    if (++writes <= SEPARATE_WRITES || pending.length() >= MAX_PENDING) flush();
    else notifyAll();
  }

  private void flush() {
    if (pending.length() == 0) return;
    frames.send(Json.object("type", "stream", "id", run, "name", pendingName, "text", pending.toString()));
    pending.setLength(0);
  }
}

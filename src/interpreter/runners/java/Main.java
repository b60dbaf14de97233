// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The Java runner: one process per context, driven over fd 3; cells run in this process by JShell. */
public class Main {
  static final int PROTOCOL_FD = 3;
  static final String[] IMPORTS = {
    "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
    "java.util.function.*", "java.util.regex.*", "java.util.stream.*",
  };

  public static void main(String[] arguments) throws Exception {
    FileDescriptor fd = descriptor(PROTOCOL_FD);
    Frames frames = new Frames(new FileInputStream(fd), new FileOutputStream(fd));
    Output output = new Output(frames);
    output.install();
    Variables variables = new Variables();
    Cells cells = new Cells();
    onInterrupt(cells::interrupt);
    BlockingQueue<Map<String, Object>> received = new LinkedBlockingQueue<>();
    frames.readInto(received);
    frames.send(Map.of("type", "ready"));
    for (int count = 0;;) {
      Map<String, Object> frame = received.take();
      if (!"execute".equals(frame.get("type"))) continue;
      Object id = frame.get("id");
      String code = (String) frame.get("code");
      cells.begin(Boolean.TRUE.equals(frame.get("after_interrupt")));
      frames.send(Json.object("type", "started", "id", id, "execution_count", count + 1));
      if (code.isBlank()) {
        cells.end();
      } else {
        count++;
        variables.set(frame.get("env") instanceof Map<?, ?> env ? env : Map.of());
        output.begin(id);
        Map<String, Object> outcome = cells.run(code, "cell-" + count);
        System.out.flush();
        System.err.flush();
        output.end();
        // A thread that was stopped may have left the old ones in any state.
        if (cells.wasInterrupted()) output.install();
        variables.restore();
        if (outcome != null) {
          outcome.put("id", id);
          frames.send(outcome);
        }
      }
      frames.send(Json.object("type", "done", "id", id));
    }
  }

  static FileDescriptor descriptor(int number) throws ReflectiveOperationException {
    Constructor<FileDescriptor> make = FileDescriptor.class.getDeclaredConstructor(int.class);
    make.setAccessible(true);
    return make.newInstance(number);
  }

  /** By reflection, because the compiler warns of this class on stderr. */
  static void onInterrupt(Runnable action) throws ReflectiveOperationException {
    Class<?> signal = Class.forName("sun.misc.Signal");
    Class<?> handler = Class.forName("sun.misc.SignalHandler");
    Object proxy = Proxy.newProxyInstance(Main.class.getClassLoader(), new Class<?>[] {handler}, (self, method, args) -> {
      if (method.getName().equals("handle")) action.run();
      return null;
    });
    signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance("INT"), proxy);
  }
}

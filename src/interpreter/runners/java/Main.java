// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The Java runner: one process per context, driven over fd 3; cells run in this process by the JDK's
// JShell. One file, because java can start a program from its source only if it is a single one.

import java.io.*;
import java.lang.reflect.*;
import java.nio.*;
import java.nio.charset.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import jdk.jshell.*;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.*;

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
      frames.send(Json.object("type", "started", "id", id, "execution_count", count + 1));
      if (!code.isBlank()) {
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

/** As much JSON as frames need. */
class Json {
  private static final int MAX_TEXT = 16 << 20;
  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  static Map<String, Object> object(Object... pairs) {
    Map<String, Object> made = new LinkedHashMap<>();
    for (int i = 0; i < pairs.length; i += 2) made.put((String) pairs[i], pairs[i + 1]);
    return made;
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> parse(String text) {
    return (Map<String, Object>) new Json(text).value();
  }

  private char next() {
    while (Character.isWhitespace(text.charAt(at))) at++;
    return text.charAt(at);
  }

  private Object value() {
    char first = next();
    if (first == '"') return string();
    if (first == '{') {
      Map<String, Object> made = new LinkedHashMap<>();
      for (at++; next() != '}'; ) {
        if (next() == ',') at++;
        next();
        String key = string();
        next();
        at++;
        made.put(key, value());
      }
      at++;
      return made;
    }
    if (first == '[') {
      List<Object> made = new ArrayList<>();
      for (at++; next() != ']'; ) {
        if (next() == ',') at++;
        made.add(value());
      }
      at++;
      return made;
    }
    int start = at;
    while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
    String word = text.substring(start, at);
    return switch (word) {
      case "true" -> true;
      case "false" -> false;
      case "null" -> null;
      default -> word.matches("-?\\d{1,18}") ? (Object) Long.valueOf(word) : Double.valueOf(word);
    };
  }

  private String string() {
    StringBuilder made = new StringBuilder();
    for (at++; text.charAt(at) != '"'; at++) {
      char c = text.charAt(at);
      if (c == '\\') {
        c = text.charAt(++at);
        int escape = "bfnrt".indexOf(c);
        if (escape >= 0) c = "\b\f\n\r\t".charAt(escape);
        if (text.charAt(at) == 'u') {
          c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
          at += 4;
        }
      }
      made.append(c);
    }
    at++;
    return made.toString();
  }

  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map<?, ?> map) {
      String separator = "{";
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        out.append(separator);
        write(entry.getKey(), out);
        out.append(':');
        write(entry.getValue(), out);
        separator = ",";
      }
      out.append(map.isEmpty() ? "{}" : "}");
    } else if (value instanceof List<?> list) {
      String separator = "[";
      for (Object one : list) {
        out.append(separator);
        write(one, out);
        separator = ",";
      }
      out.append(list.isEmpty() ? "[]" : "]");
    } else if (value instanceof String string) {
      writeString(string, out);
    } else {
      out.append(value);
    }
  }

  private static void writeString(String full, StringBuilder out) {
    String string = full.length() <= MAX_TEXT ? full : full.substring(0, MAX_TEXT) + "... (cut: " + full.length() + " characters)";
    out.append('"');
    for (int i = 0; i < string.length(); i++) {
      char c = string.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20) {
        out.append(String.format("\\u%04x", (int) c));
      } else if (Character.isHighSurrogate(c) && i + 1 < string.length() && Character.isLowSurrogate(string.charAt(i + 1))) {
        out.append(c).append(string.charAt(++i));
      } else {
        out.append(Character.isSurrogate(c) ? '\ufffd' : c);
      }
    }
    out.append('"');
  }
}

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

/** Variables of one run, in the environment as Java sees it and as system properties. */
class Variables {
  private final Map<String, String> before = new HashMap<>();
  private final Map<String, String> propertyBefore = new HashMap<>();
  private Map<Object, Object> environment;
  private Method nameOf;
  private Method valueOf;

  @SuppressWarnings("unchecked")
  Variables() {
    System.getenv().forEach((name, value) -> {
      if (!name.isEmpty() && System.getProperty(name) == null) System.setProperty(name, value);
    });
    try {
      Class<?> holder = Class.forName("java.lang.ProcessEnvironment");
      Field field = holder.getDeclaredField("theEnvironment");
      field.setAccessible(true);
      nameOf = Class.forName("java.lang.ProcessEnvironment$Variable").getDeclaredMethod("valueOf", String.class);
      valueOf = Class.forName("java.lang.ProcessEnvironment$Value").getDeclaredMethod("valueOf", String.class);
      nameOf.setAccessible(true);
      valueOf.setAccessible(true);
      environment = (Map<Object, Object>) field.get(null);
    } catch (ReflectiveOperationException changed) {
      // A JDK that keeps them elsewhere: the properties remain.
    }
  }

  void set(Map<?, ?> wanted) {
    wanted.forEach((key, object) -> {
      if (!(key instanceof String name) || !(object instanceof String value) || name.isEmpty()) return;
      before.put(name, System.getenv(name));
      propertyBefore.put(name, System.getProperty(name));
      put(name, value);
      System.setProperty(name, value);
    });
  }

  void restore() {
    before.forEach(this::put);
    propertyBefore.forEach((name, value) -> {
      if (value == null) System.clearProperty(name);
      else System.setProperty(name, value);
    });
    before.clear();
    propertyBefore.clear();
  }

  private void put(String name, String value) {
    if (environment == null) return;
    try {
      if (value == null) environment.remove(nameOf.invoke(null, name));
      else environment.put(nameOf.invoke(null, name), valueOf.invoke(null, value));
    } catch (ReflectiveOperationException refused) {
      // No environment can hold this name or value.
    }
  }
}

/** Runs cells, snippet by snippet. */
class Cells {
  private static final int STOP_AGAIN_MS = 100;

  /** Where a snippet stands: its cell and the line there. */
  private record Place(String cell, int line) {}

  private final Map<String, Place> places = new HashMap<>();
  private final JShell shell;
  private volatile boolean interrupted;
  private int run; // its number, 0 between runs
  private int runs;
  private Object value;

  /** Executes in this process, and keeps the value itself beside its text. */
  private class Execution extends LocalExecutionControl {
    @Override
    protected String invoke(Method method) throws Exception {
      if (interrupted) throw new StoppedException();
      Call.target = method;
      Call.cells = Cells.this;
      return super.invoke(Call.class.getMethod("run"));
    }
  }

  public static class Call {
    static Method target;
    static Cells cells;

    public static Object run() throws Throwable {
      try {
        return cells.value = target.invoke(null);
      } catch (InvocationTargetException thrown) {
        throw thrown.getCause();
      }
    }
  }

  Cells() {
    ExecutionControlProvider provider = new ExecutionControlProvider() {
      @Override
      public String name() {
        return "alcove";
      }

      @Override
      public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
        return new Execution();
      }
    };
    shell = JShell.builder().executionEngine(provider, Map.of()).in(InputStream.nullInputStream()).build();
    for (String name : Main.IMPORTS) shell.eval("import " + name + ";");
  }

  /** Stops the run under way; again and again, as it may have been between two snippets. */
  synchronized void interrupt() {
    if (run == 0 || interrupted) return;
    interrupted = true;
    int stopped = run;
    Thread stopper = new Thread(() -> {
      while (stop(stopped)) sleep();
    }, "alcove-interrupt");
    stopper.setDaemon(true);
    stopper.start();
  }

  /** Under the lock, so that no later run is hit. */
  private synchronized boolean stop(int number) {
    if (run == number) shell.stop();
    return run == number;
  }

  private static void sleep() {
    try {
      Thread.sleep(STOP_AGAIN_MS);
    } catch (InterruptedException ignored) {
      // Nobody has a reason to.
    }
  }

  private synchronized void setRun(boolean active) {
    run = active ? ++runs : 0;
    if (active) interrupted = false;
  }

  boolean wasInterrupted() {
    return interrupted;
  }

  /** The `result` or `error` frame of the cell; null if there is neither. */
  Map<String, Object> run(String code, String name) {
    value = null;
    setRun(true);
    Map<String, Object> outcome;
    try {
      outcome = evaluate(code, name);
    } catch (Throwable failure) {
      outcome = error(failure.getClass().getSimpleName(), String.valueOf(failure.getMessage()), failure.toString());
    }
    setRun(false);
    if (!interrupted) return outcome;
    String text = "the execution was interrupted";
    return error("KeyboardInterrupt", text, "KeyboardInterrupt: " + text);
  }

  private Map<String, Object> evaluate(String code, String name) {
    SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
    List<Snippet> undecided = new ArrayList<>();
    Map<String, Object> result = null;
    for (String rest = code.stripLeading(); !rest.isEmpty() && !interrupted; rest = rest.stripLeading()) {
      SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
      if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY) break;
      boolean complete = info.completeness().isComplete() && info.source() != null;
      String source = complete ? info.source() : rest;
      int line = 1 + (int) code.substring(0, code.length() - rest.length()).chars().filter((c) -> c == '\n').count();
      result = null;
      for (SnippetEvent event : shell.eval(source)) {
        if (event.causeSnippet() != null) continue;
        places.put(event.snippet().id(), new Place(name, line));
        if (event.exception() != null) return describe(event.exception());
        if (event.status() == Snippet.Status.REJECTED) return rejected(event.snippet(), source, name, line);
        if (event.status().isActive() && !event.status().isDefined() || event.status() == Snippet.Status.RECOVERABLE_DEFINED) undecided.add(event.snippet());
        result = resultOf(event);
      }
      if (!complete) break;
      rest = info.remaining();
    }
    for (Snippet snippet : undecided) warn(snippet);
    return result;
  }

  private Map<String, Object> resultOf(SnippetEvent event) {
    Snippet snippet = event.snippet();
    boolean isValue = snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND
        || snippet.subKind() == Snippet.SubKind.VAR_VALUE_SUBKIND
        || snippet.subKind() == Snippet.SubKind.OTHER_EXPRESSION_SUBKIND;
    if (!isValue || event.value() == null) return null;
    Map<String, Object> data = Json.object("text/plain", event.value());
    String image = Images.png(value);
    if (image != null) data.put("image/png", image);
    return Json.object("type", "result", "data", data, "main", true);
  }

  /** A declaration that nothing completed is no failure, but it cannot be used yet. */
  private void warn(Snippet snippet) {
    Snippet.Status status = shell.status(snippet);
    if (snippet instanceof DeclarationSnippet declared && (status == Snippet.Status.RECOVERABLE_DEFINED || status == Snippet.Status.RECOVERABLE_NOT_DEFINED)) {
      System.err.println(declared.name() + " cannot be used until this is declared: " + missing(declared));
    }
  }

  private String missing(DeclarationSnippet snippet) {
    String names = shell.unresolvedDependencies(snippet).collect(Collectors.joining(", "));
    return names.isEmpty() ? shell.diagnostics(snippet).map((diag) -> diag.getMessage(null)).collect(Collectors.joining("; ")) : names;
  }

  private Map<String, Object> rejected(Snippet snippet, String source, String name, int firstLine) {
    StringBuilder trace = new StringBuilder();
    String first = null;
    for (Diag diag : shell.diagnostics(snippet).filter(Diag::isError).collect(Collectors.toList())) {
      int at = (int) Math.max(0, Math.min(diag.getStartPosition(), source.length()));
      int start = source.lastIndexOf('\n', at - 1) + 1;
      int end = source.indexOf('\n', at);
      String text = source.substring(start, end < 0 ? source.length() : end);
      int line = firstLine + (int) source.substring(0, start).chars().filter((c) -> c == '\n').count();
      String caret = text.substring(0, Math.min(at - start, text.length())).replaceAll("[^\t]", " ") + "^";
      String message = diag.getMessage(null);
      if (first == null) first = message;
      trace.append(String.format("%s:%d: error: %s%n%s%n%s%n", name, line, message, text, caret));
    }
    return error("CompilationError", first == null ? "the code is not complete" : first, trace.toString());
  }

  private Map<String, Object> describe(Throwable thrown) {
    if (thrown instanceof UnresolvedReferenceException unresolved) {
      String text = unresolved.getSnippet().name() + " cannot be used until this is declared: " + missing(unresolved.getSnippet());
      return error("UnresolvedReference", text, "UnresolvedReference: " + text + trace(thrown));
    }
    StringBuilder text = new StringBuilder();
    for (Throwable one = thrown; one != null; one = one.getCause()) {
      if (one != thrown) text.append("\nCaused by: ");
      String message = one.getMessage();
      text.append(nameOf(one)).append(message == null ? "" : ": " + message).append(trace(one));
    }
    String name = nameOf(thrown);
    String message = thrown.getMessage();
    return error(name.substring(name.lastIndexOf('.') + 1), message == null ? "" : message, text.toString());
  }

  private static String nameOf(Throwable thrown) {
    String name = thrown instanceof EvalException eval ? eval.getExceptionClassName() : thrown.getClass().getName();
    // Classes of cells are inside one that JShell makes.
    return name.startsWith("REPL.") ? name.substring(name.lastIndexOf('$') + 1) : name;
  }

  /** The stack down to the cell; what called the cell is this runner. */
  private String trace(Throwable thrown) {
    StackTraceElement[] stack = thrown.getStackTrace();
    int end = stack.length;
    while (end > 0 && !isSnippet(stack[end - 1])) end--;
    StringBuilder made = new StringBuilder();
    for (StackTraceElement frame : Arrays.asList(stack).subList(0, end == 0 ? stack.length : end)) {
      Place place = isSnippet(frame) ? places.get(frame.getFileName().substring(1)) : null;
      String method = frame.getMethodName();
      made.append("\n    at ");
      if (place == null) made.append(frame);
      else made.append(method.isEmpty() || method.equals("do_it$") ? "" : method + " ").append('(').append(place.cell()).append(':').append(place.line() + frame.getLineNumber() - 1).append(')');
    }
    return made.toString();
  }

  private static boolean isSnippet(StackTraceElement frame) {
    return frame.getFileName() != null && frame.getFileName().startsWith("#");
  }

  private static Map<String, Object> error(String name, String value, String traceback) {
    return Json.object("type", "error", "name", name, "value", value, "traceback", List.of(traceback));
  }
}

/** Images as PNG. java.desktop is loaded only when a cell has used it. */
class Images {
  static String png(Object value) {
    if (value == null || !"java.desktop".equals(value.getClass().getModule().getName())) return null;
    if (!(value instanceof java.awt.image.RenderedImage image)) return null;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      if (!javax.imageio.ImageIO.write(image, "png", bytes)) return null;
    } catch (IOException failed) {
      return null;
    }
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.UnresolvedReferenceException;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;

/** Runs cells, snippet by snippet. */
class Cells {
  private static final int STOP_AGAIN_MS = 100;
  // A signal that was sent is here sooner, or was lost.
  private static final int PATIENCE_MS = 1000;

  /** Where a snippet stands: its cell and the line there. */
  private record Place(String cell, int line) {}

  private final Map<String, Place> places = new HashMap<>();
  private final JShell shell;
  private volatile boolean interrupted;
  private int run; // its number, 0 between runs
  private int runs;
  private boolean signalled; // since the last run began
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
    signalled = true;
    notifyAll();
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

  /** From here on an interrupt means the next run. Signals come on another thread: one that is on its way is awaited. */
  synchronized void begin(boolean isSignalOnItsWay) {
    long end = System.nanoTime() + PATIENCE_MS * 1_000_000L;
    try {
      for (long left; isSignalOnItsWay && !signalled && (left = (end - System.nanoTime()) / 1_000_000) > 0;) wait(left);
    } catch (InterruptedException ignored) {
      // Nobody has a reason to.
    }
    signalled = false;
    interrupted = false;
    run = ++runs;
  }

  synchronized void end() {
    run = 0;
  }

  boolean wasInterrupted() {
    return interrupted;
  }

  /** After begin(): the `result` or `error` frame of the cell; null if there is neither. */
  Map<String, Object> run(String code, String name) {
    value = null;
    Map<String, Object> outcome;
    try {
      outcome = evaluate(code, name);
    } catch (Throwable failure) {
      outcome = error(failure.getClass().getSimpleName(), String.valueOf(failure.getMessage()), failure.toString());
    }
    end();
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

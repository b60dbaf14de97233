// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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

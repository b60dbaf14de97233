// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;

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

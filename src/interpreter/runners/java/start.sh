# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
# Starts the Java runner. The first context compiles it; from the classes, a start takes less than half
# of the time that it takes from the source.

folder=${0%/*}
bin=
if [ -x "$JAVA_HOME/bin/java" ] && [ -x "$JAVA_HOME/bin/javac" ]; then bin=$JAVA_HOME/bin/; fi
set -- -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
  --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.lang=ALL-UNNAMED \
  -Djava.awt.headless=true -Dfile.encoding=UTF-8

# Another source has other classes. The name appears when all of them are there.
classes=$folder/classes-$(stat -c %Y-%s "$folder/Main.java")
if [ ! -d "$classes" ]; then
  made=$classes.$$
  if "${bin}javac" -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -proc:none -nowarn -d "$made" "$folder/Main.java" \
    >/dev/null 2>&1 3>&-; then
    mv -T "$made" "$classes" 2>/dev/null
  fi
  rm -rf "$made"
fi
if [ -d "$classes" ]; then exec "${bin}java" "$@" -cp "$classes" Main; fi
exec "${bin}java" "$@" "$folder/Main.java"

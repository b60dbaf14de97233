# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
# Starts the Java runner. The first context compiles it, later ones find the classes.

folder=${0%/*}
bin=
if [ -x "$JAVA_HOME/bin/java" ] && [ -x "$JAVA_HOME/bin/javac" ]; then bin=$JAVA_HOME/bin/; fi

# Other sources have other classes. The name appears when all of them are there.
stamp=$(cat "$folder"/*.java | cksum)
classes=$folder/classes-${stamp%% *}
if [ ! -d "$classes" ]; then
  made=$classes.$$
  "${bin}javac" -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -proc:none -nowarn -d "$made" "$folder"/*.java 3>&- || exit
  mv -T "$made" "$classes" 2>/dev/null || rm -rf "$made"
fi
exec "${bin}java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
  --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.lang=ALL-UNNAMED \
  -Djava.awt.headless=true -Dfile.encoding=UTF-8 -cp "$classes" Main

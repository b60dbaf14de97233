// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Base64;

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

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
import base64
from pathlib import Path

from e2b_code_interpreter import Sandbox

CODE = """
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
display(sales)
plt.bar(sales["fruit"], sales["kg"], label="March")
plt.title("Sales")
plt.ylabel("Weight (kg)")
plt.show()
"""

with Sandbox.create() as sandbox:
    sandbox.files.write("sales.csv", "fruit,kg\npear,30\napple,20.5\n")
    table, figure = sandbox.run_code(CODE).results
    print(table.formats(), table.data)

    # The figure as an image, and as data.
    print(figure.formats())
    Path("/tmp/sales.png").write_bytes(base64.b64decode(figure.png))
    chart = figure.chart
    print(chart.type.value, chart.title, chart.y_label, chart.y_unit)
    for bar in chart.elements:
        print(bar.group, bar.label, bar.value)

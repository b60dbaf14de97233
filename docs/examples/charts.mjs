// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { writeFile } from 'node:fs/promises'
import { Sandbox } from '@e2b/code-interpreter'

const code = `
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
display(sales)
plt.bar(sales["fruit"], sales["kg"], label="March")
plt.title("Sales")
plt.ylabel("Weight (kg)")
plt.show()
`

const sandbox = await Sandbox.create()
await sandbox.files.write('sales.csv', 'fruit,kg\npear,30\napple,20.5\n')
const [table, figure] = (await sandbox.runCode(code)).results
console.log(table.formats(), table.data)

// The figure as an image, and as data.
console.log(figure.formats())
await writeFile('/tmp/sales.png', Buffer.from(figure.png, 'base64'))
const { chart } = figure
console.log(chart.type, chart.title, chart.y_label, chart.y_unit)
for (const bar of chart.elements) {
  console.log(bar.group, bar.label, bar.value)
}

await sandbox.kill()

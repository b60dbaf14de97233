// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// runCode as people use it, by the JS client: a day of an analyst, from the upload of a table to the
// results that come down. test_run_code_day.py is the same in Python.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, printed, succeed } from './run_code_support.mjs'

const cities = ['Oslo', 'Rīga', '東京']
const days = Array.from({ length: 28 }, (_, n) => `2026-03-${String(n + 1).padStart(2, '0')}`)
// Numbers without chance, so that the answers are known.
const rows = days.flatMap((day, d) => cities.map((city, c) => ({ day, city, pieces: 1 + ((d * 37 + c * 11) % 90), price: 1.25 + ((d * 7 + c) % 19) })))
const table = ['day,city,pieces,price', ...rows.map((row) => Object.values(row).join(',')), ''].join('\n')

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0)
const of = (city) => rows.filter((row) => row.city === city)
const revenue = cities.map((city) => sum(of(city).map((row) => row.pieces * row.price)))

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2
}

test('a day of an analyst', { timeout: 300_000 }, async () => {
  const sandbox = await create()

  // In the morning: the data go up, and are looked at.
  await sandbox.files.write('data/sales.csv', table)
  const loaded = await succeed(sandbox, "import pandas as pd\nsales = pd.read_csv('data/sales.csv', parse_dates=['day'])\nsales")
  assert.ok(loaded.results[0].isMainResult && loaded.results[0].html.includes('<table'))
  assert.deepEqual(loaded.results[0].data.pieces, rows.map((row) => row.pieces))
  assert.deepEqual(loaded.results[0].data.day, rows.map((row) => `${row.day}T00:00:00`))

  // A first try with a mistake in it; what was there is still there.
  assert.equal((await sandbox.runCode("sales['revenu']")).error.name, 'KeyError')
  const grouped = "sales['revenue'] = sales.pieces * sales.price\nby_city = sales.groupby('city', sort=False).revenue.sum()\nby_city.to_dict()"
  assert.deepEqual((await succeed(sandbox, grouped)).results[0].json, Object.fromEntries(cities.map((city, n) => [city, revenue[n]])))

  // A chart: as an image for people, as data for programs, as a file for later.
  const plot = `import matplotlib.pyplot as plt
plt.bar(by_city.index, by_city, label='March')
plt.title('Revenue')
plt.ylabel('Revenue (EUR)')
plt.savefig('revenue.svg')
plt.show()`
  const { results } = await succeed(sandbox, plot)
  assert.equal(results.length, 1)
  const png = Buffer.from(results[0].png, 'base64')
  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  const { chart } = results[0]
  assert.deepEqual([chart.type, chart.title, chart.y_unit], ['bar', 'Revenue', 'EUR'])
  assert.deepEqual(chart.elements.map((bar) => [bar.label, bar.value]), cities.map((city, n) => [city, revenue[n]]))

  // The same files in other languages: R works out medians, TypeScript writes a report, bash packs it.
  const inR = "sales <- read.csv('data/sales.csv', fileEncoding = 'UTF-8')\nfor (city in unique(sales$city)) cat(city, median(sales$pieces[sales$city == city]), '\\n')"
  const medians = Object.fromEntries(cities.map((city) => [city, median(of(city).map((row) => row.pieces))]))
  const lines = (await printed(sandbox, inR, { language: 'r' })).trim().split('\n')
  assert.deepEqual(Object.fromEntries(lines.map((line) => [line.split(' ')[0], Number(line.split(' ')[1])])), medians)
  const inTypeScript = `
import fs from 'node:fs/promises'
const medians: Record<string, number> = ${JSON.stringify(medians)}
const lines = Object.entries(medians).map(([city, pieces]) => \`- \${city}: \${pieces}\`)
await fs.writeFile('report.md', ['# March', ...lines, ''].join('\\n'))
lines.length`
  assert.equal((await succeed(sandbox, inTypeScript, { language: 'typescript' })).text, '3')
  const packed = await printed(sandbox, 'tar -czf day.tar.gz report.md revenue.svg data && tar -tzf day.tar.gz | sort', { language: 'bash' })
  assert.deepEqual(packed.split(/\s+/).filter(Boolean), ['data/', 'data/sales.csv', 'report.md', 'revenue.svg'])

  // Three simulations beside each other, each with a state of its own. Each goes on when all have come
  // as far: they would wait for ever if they ran one after the other.
  const contexts = await Promise.all(cities.map(() => sandbox.createCodeContext({ cwd: '/home/user/data' })))
  await Promise.all(contexts.map((context, n) => succeed(sandbox, `number = ${n}`, { context })))
  const meet = `import pathlib, time
pathlib.Path(f"here-{number}").touch()
while len(list(pathlib.Path().glob("here-*"))) < 3:
    time.sleep(0.01)
number * 100`
  const met = await Promise.all(contexts.map((context) => succeed(sandbox, meet, { context, timeoutMs: 60_000 })))
  assert.deepEqual(met.map(({ text }) => text), ['0', '100', '200'])
  assert.equal((await sandbox.runCode('number')).error.name, 'NameError')

  // In the evening the results come down.
  assert.deepEqual((await sandbox.files.read('report.md')).trim().split('\n').slice(1), cities.map((city) => `- ${city}: ${medians[city]}`))
  assert.ok((await sandbox.files.read('revenue.svg')).includes('<svg'))
  assert.deepEqual([...(await sandbox.files.read('day.tar.gz', { format: 'bytes' })).subarray(0, 2)], [0x1f, 0x8b])
})

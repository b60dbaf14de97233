// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// run_code's rich results and charts, by the JS client; test_run_code_results.py and
// test_run_code_charts.py have more.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'

let sandbox

before(async () => {
  sandbox = await Sandbox.create({ timeoutMs: 600_000 })
})

after(() => sandbox?.kill())

/** Runs code that must not fail. */
async function run(code, options = {}) {
  const execution = await sandbox.runCode(code, { timeoutMs: 120_000, ...options })
  assert.equal(execution.error, undefined, execution.error?.traceback)
  return execution
}

/** The only result of code that must not fail. */
async function only(code) {
  const { results } = await run(code)
  assert.equal(results.length, 1, JSON.stringify(results))
  return results[0]
}

const chartOf = async (code) => (await only(`import matplotlib.pyplot as plt\n${code}\nplt.show()`)).chart

test('display objects', async () => {
  const made = {
    html: ["HTML('<b>x</b>')", '<b>x</b>'],
    markdown: ["Markdown('*x*')", '*x*'],
    latex: ["Latex('$x$')", '$x$'],
    svg: ["SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    json: ["JSON({'a': [1, None, 'é']})", { a: [1, null, 'é'] }],
    javascript: ["Javascript('f()')", 'f()'],
  }
  for (const [name, [code, want]] of Object.entries(made)) {
    const value = await only(`from IPython.display import *\n${code}`)
    assert.deepEqual([value[name], value.isMainResult, value.formats()], [want, true, [name]])
    assert.equal((await only(`display(${code})`)).isMainResult, false)
  }
})

test('other MIME types are in the raw result', async () => {
  const value = await only("display({'text/plain': 't', 'image/png': 'cG5n', 'application/x.own+json': {'a': [1, None]}}, raw=True)")
  assert.deepEqual(value.raw, { text: 't', png: 'cG5n', extra: { 'application/x.own+json': { a: [1, null] } } })
})

test('texts, lists and dicts', async () => {
  assert.equal((await run("'hello'")).text, 'hello')
  const odd = await run("display({'text/plain': '東 \\u2028 😀' * 50_000}, raw=True)")
  assert.equal(odd.results[0].text, '東 \u2028 😀'.repeat(50_000))
  const value = await only("{'a': [1, 2.5, None], 2: 'é'}")
  assert.deepEqual(value.json, { a: [1, 2.5, null], 2: 'é' })
})

test('a data frame has its columns', async () => {
  const value = await only("import pandas as pd\npd.DataFrame({'a': [1, 2, 3], 't': pd.to_datetime(['2020-01-01', None, '2020-01-03']), 'f': [0.5, None, 1]})")
  assert.deepEqual(value.data, { a: [1, 2, 3], t: ['2020-01-01T00:00:00', null, '2020-01-03T00:00:00'], f: [0.5, null, 1] })
  assert.equal(value.data.a.length, 3)
  assert.ok(value.html.includes('<table') && value.formats().includes('data'))
})

test('results come in the order of their display', async () => {
  const seen = []
  const code = 'display(1)\nprint("out")\ndisplay({"text/html": "2"}, raw=True)\n3'
  const execution = await run(code, {
    onStdout: (message) => seen.push(message.line),
    onResult: (result) => seen.push(result.text ?? result.html),
  })
  assert.deepEqual(seen, ['1', 'out\n', '2', '3'])
  assert.deepEqual(execution.results.map((result) => result.isMainResult), [false, false, true])
})

test('images', async () => {
  for (const code of ['plt.show()', 'plt.savefig("/tmp/chart.png")\nplt.close()', 'plt.gcf()']) {
    const { results } = await run(`import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\n${code}`)
    assert.ok(Buffer.from(results[0].png, 'base64').subarray(0, 4).equals(Buffer.from('\x89PNG', 'latin1')))
    assert.deepEqual(results[0].extra, {})
  }
  assert.ok(Buffer.from(await sandbox.files.read('/tmp/chart.png', { format: 'bytes' })).subarray(1, 4).equals(Buffer.from('PNG')))
})

test('a line chart', async () => {
  const chart = await chartOf(`import datetime
plt.plot([datetime.date(2023, 9, d) for d in (1, 2, 3)], [1.5, 2, 3], label='y')
plt.xlabel('Date')
plt.ylabel('Size (MiB)')`)
  assert.equal(chart.type, 'line')
  assert.deepEqual([chart.title, chart.x_label, chart.x_unit, chart.y_label, chart.y_unit], [null, 'Date', null, 'Size (MiB)', 'MiB'])
  assert.deepEqual([chart.x_scale, chart.y_scale], ['datetime', 'linear'])
  assert.equal(new Date(chart.elements[0].points[0][0]).getTime(), Date.UTC(2023, 8, 1))
  assert.deepEqual(chart.elements[0].points.map(([, y]) => y), [1.5, 2, 3])
  assert.equal(chart.x_ticks.length, chart.x_tick_labels.length)
})

test('a log axis', async () => {
  const chart = await chartOf("plt.plot([1, 2, 3], [10, 100, 1000])\nplt.yscale('log')\nplt.ylabel('Y (log scale)')")
  assert.deepEqual([chart.x_scale, chart.y_scale, chart.y_unit], ['linear', 'log', 'log scale'])
})

test('scatter, bar, pie and box charts', async () => {
  const nothing = { x_label: null, y_label: null, x_unit: null, y_unit: null, title: null }
  const { elements, type } = await chartOf("plt.scatter([1, 2], [3, 4], label='s')")
  assert.deepEqual({ elements, type }, { type: 'scatter', elements: [{ label: 's', points: [[1, 3], [2, 4]] }] })

  const bar = await chartOf("plt.bar(['a', 'b'], [1, 2.5], label='g')")
  assert.deepEqual(bar, { ...nothing, type: 'bar', elements: [{ label: 'a', group: 'g', value: 1 }, { label: 'b', group: 'g', value: 2.5 }] })

  const pie = await chartOf("plt.pie([90, 10], labels=['a', 'b'], startangle=90)\nplt.title('P')")
  assert.deepEqual(pie, { type: 'pie', title: 'P', elements: [{ label: 'a', angle: 324, radius: 1 }, { label: 'b', angle: 36, radius: 1 }] })

  const box = await chartOf("plt.boxplot([[95, 89, 76, 91, 84, 87]], tick_labels=['B'], patch_artist=True)")
  const want = { label: 'B', min: 84, first_quartile: 84.75, median: 88, third_quartile: 90.5, max: 95, outliers: [76] }
  assert.deepEqual(box, { ...nothing, type: 'box_and_whisker', elements: [want] })
})

test('superchart, unknown and no chart', async () => {
  const several = await chartOf("figure, (left, right) = plt.subplots(1, 2)\nfigure.suptitle('Both')\nleft.plot([1, 2])\nright.bar(['a'], [1])")
  assert.deepEqual([several.type, several.title, several.elements.map((one) => one.type)], ['superchart', 'Both', ['line', 'bar']])
  assert.deepEqual(await chartOf('plt.imshow([[1, 2], [3, 4]])'), { type: 'unknown', title: null, elements: [] })
  assert.deepEqual(await chartOf('plt.subplots()'), {})
})

test('plotly', async () => {
  const value = await only("import plotly.graph_objects as go\ngo.Figure(go.Bar(x=['a'], y=[1]))")
  assert.ok(value.html.includes('Plotly.newPlot'))
  assert.deepEqual(value.raw.extra['application/vnd.plotly.v1+json'].data[0].x, ['a'])
})

test('errors', async () => {
  const { error, logs } = await sandbox.runCode("print('before')\ndef f(): return 1 / 0\nf()")
  assert.deepEqual([error.name, error.value, logs.stdout], ['ZeroDivisionError', 'division by zero', ['before\n']])
  assert.ok(error.traceback.includes('----> 3 f()') && !error.traceback.includes('\x1b'))
  assert.equal((await sandbox.runCode("input('?')")).error.name, 'StdinNotImplementedError')
})

test('a result of more than ten megabytes', async () => {
  // The client looks through all of a line with each piece of it that comes.
  const value = await only("'x' * (11 << 20)")
  assert.equal(value.text, 'x'.repeat(11 << 20))
})

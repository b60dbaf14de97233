// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// runCode in six languages, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { create, printed, succeed } from './run_code_support.mjs'

let sandbox
before(async () => {
  sandbox = await create()
})

const cases = {
  python: ['x = 20', 'print(x + 1)', 'import os; print(os.getcwd())'],
  javascript: ['var x = 20', 'console.log(x + 1)', 'console.log(process.cwd())'],
  typescript: ['let x: number = 20', 'console.log((x as number) + 1)', 'console.log(process.cwd() as string)'],
  r: ['x <- 20', 'cat(x + 1, "\\n", sep = "")', 'cat(getwd(), "\\n", sep = "")'],
  java: ['int x = 20;', 'System.out.println(x + 1)', 'System.out.println(System.getProperty("user.dir"))'],
  bash: ['x=20', 'echo $((x + 1))', 'pwd'],
}

for (const [language, [set, show, cwd]] of Object.entries(cases)) {
  test(`${language} keeps its state`, async () => {
    await succeed(sandbox, set, { language })
    assert.equal(await printed(sandbox, show, { language }), '21\n')
    assert.equal(await printed(sandbox, cwd, { language }), '/home/user\n')
    const context = await sandbox.createCodeContext({ language, cwd: '/tmp' })
    assert.equal(await printed(sandbox, cwd, { context }), '/tmp\n')
  })
}

test('modules, await and types', async () => {
  assert.equal(await printed(sandbox, 'import { readFileSync } from "fs"\nconsole.log(typeof readFileSync)', { language: 'js' }), 'function\n')
  assert.equal((await succeed(sandbox, "async function hello() { return 'Hello World!' }\nawait hello()", { language: 'js' })).text, 'Hello World!')
  const typed = await succeed(sandbox, 'const message: string = "Hello, World!"; console.log(message)', { language: 'ts' })
  assert.deepEqual(typed.logs.stdout, ['Hello, World!\n'])
  assert.equal((await succeed(sandbox, 'new Set<string>(["a"]).size', { language: 'ts' })).text, '1')
})

test('what each language says of its output', async () => {
  assert.deepEqual((await succeed(sandbox, 'print("Hello, World!")', { language: 'r' })).logs.stdout, ['[1] "Hello, World!"\n'])
  assert.equal((await succeed(sandbox, 'System.out.println("Hello, World!")', { language: 'java' })).logs.stdout[0], 'Hello, World!')
  assert.deepEqual((await sandbox.runCode('echo out; exit 3', { language: 'bash' })).error.value, '3')
})

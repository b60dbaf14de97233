// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from '@e2b/code-interpreter'

const programs = {
  python: 'sum(range(10))',
  javascript: 'const { sum } = await Promise.resolve({ sum: 45 }); sum',
  typescript: 'const numbers: number[] = [1, 2, 3]; numbers.length',
  r: 'mean(c(1, 2, 6))',
  java: 'String.join("-", "a", "b")',
  bash: 'echo $((6 * 7))',
}

const sandbox = await Sandbox.create()
for (const [language, code] of Object.entries(programs)) {
  const { results, logs } = await sandbox.runCode(code, { language })
  console.log(language, results.map(({ text }) => text), logs.stdout)
}

await sandbox.kill()

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox, TimeoutError } from '@e2b/code-interpreter'

const code = `
import os, sys, time
for i in range(3):
    print(os.environ["GREETING"], i, flush=True)
    time.sleep(0.2)
print("careful", file=sys.stderr)
display("shown")
`

const sandbox = await Sandbox.create()

// Output and results as they come; the variable is there for this run only.
await sandbox.runCode(code, {
  envs: { GREETING: "it's" },
  onStdout: (message) => process.stdout.write(`out: ${message.line}`),
  onStderr: (message) => process.stdout.write(`err: ${message.line}`),
  onResult: (result) => console.log(`result: ${result.text}`),
})
console.log((await sandbox.runCode("'GREETING' in os.environ")).text)

// A run that takes too long is interrupted; the context goes on.
try {
  await sandbox.runCode('n = 0\nwhile True: n += 1', { timeoutMs: 1000 })
} catch (error) {
  if (!(error instanceof TimeoutError)) throw error
  console.log((await sandbox.runCode('n > 0')).text)
}

await sandbox.kill()

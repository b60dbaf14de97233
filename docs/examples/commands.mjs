// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { CommandExitError, Sandbox } from 'e2b'

const sandbox = await Sandbox.create()

// Output as it comes.
await sandbox.commands.run('for i in 1 2 3; do echo $GREETING $i; sleep 0.2; done', {
  envs: { GREETING: 'hello' },
  cwd: '/tmp',
  onStdout: (text) => process.stdout.write(text),
})

// An exit code other than 0 is an exception.
try {
  await sandbox.commands.run('ls /nowhere')
} catch (error) {
  if (!(error instanceof CommandExitError)) throw error
  console.log('exit code', error.exitCode)
}

// In the background, with input.
const sorting = await sandbox.commands.run('sort', { background: true, stdin: true })
await sandbox.commands.sendStdin(sorting.pid, 'pear\napple\n')
await sandbox.commands.closeStdin(sorting.pid)
process.stdout.write((await sorting.wait()).stdout)

await sandbox.kill()

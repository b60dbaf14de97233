// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Every method of sandbox.git by the JS client, with a git daemon in the sandbox as the other side;
// test_git.py has more of each.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { CommandExitError, InvalidArgumentError } from 'e2b'
import * as e2b from 'e2b'
import { create, eventually, rejects } from './support.mjs'

const repo = '/tmp/git/repo'
const served = '/tmp/git/served'
const url = 'git://127.0.0.1:9418/project.git'
const author = { authorName: 'Ada', authorEmail: 'ada@example.com' }
const skip = e2b.Git ? false : 'the client has no git'

let sandbox, git

/** Writes a file and commits it. */
async function commit(name, text, message) {
  await sandbox.files.write(`${repo}/${name}`, text)
  await git.add(repo)
  await git.commit(repo, message, author)
}

const run = async (command) => (await sandbox.commands.run(command, { cwd: repo })).stdout
const names = (status) => status.fileStatus.map((file) => `${file.status} ${file.name}`).sort()

before(async () => {
  if (skip) return
  sandbox = await create({ timeoutMs: 300_000 })
  git = sandbox.git
  const made = await git.init(repo, { initialBranch: 'main' })
  assert.ok(made.stdout.includes('Initialized empty Git repository'), made.stdout)
  await commit('README.md', 'hello\n', 'first')
  await git.init(`${served}/project.git`, { bare: true, initialBranch: 'main' })
  const options = '--reuseaddr --export-all --enable=receive-pack --listen=127.0.0.1 --port=9418'
  await sandbox.commands.run(`git daemon ${options} --base-path=${served} ${served}`, { background: true, timeoutMs: 0 })
  const answers = () => sandbox.commands.run(': < /dev/tcp/127.0.0.1/9418').then(() => true, () => false)
  assert.ok(await eventually(answers, 20_000))
})

test('status, add, commit', { skip }, async () => {
  assert.equal((await git.status(repo)).isClean, true)
  await run('touch a b; echo more >> README.md')
  assert.deepEqual(names(await git.status(repo)), ['modified README.md', 'untracked a', 'untracked b'])
  await git.add(repo, { files: ['a'] })
  const status = await git.status(repo)
  assert.deepEqual([status.currentBranch, status.hasStaged, status.stagedCount, status.untrackedCount], ['main', true, 1, 1])
  await git.add(repo)
  const message = 'it\'s "quoted" $HOME `id`\n\nbody ünï'
  await git.commit(repo, message, author)
  assert.equal((await run("git log -1 --format='%an|%ae|%B'")).trimEnd(), `Ada|ada@example.com|${message}`)
  const { stdout } = await rejects(git.commit(repo, 'nothing', author), CommandExitError)
  assert.ok(stdout.includes('nothing to commit'), stdout)
  assert.equal((await rejects(git.status('/tmp'), CommandExitError)).exitCode, 128)
})

test('branches', { skip }, async () => {
  await git.createBranch(repo, 'feature')
  assert.deepEqual({ ...(await git.branches(repo)) }, { branches: ['feature', 'main'], currentBranch: 'feature' })
  await commit('new', '1', 'work')
  await git.checkoutBranch(repo, 'main')
  assert.equal((await git.branches(repo)).currentBranch, 'main')
  const { stderr } = await rejects(git.deleteBranch(repo, 'feature'), CommandExitError)
  assert.ok(stderr.includes('not fully merged'), stderr)
  await git.deleteBranch(repo, 'feature', { force: true })
  assert.deepEqual((await git.branches(repo)).branches, ['main'])
})

test('reset and restore', { skip }, async () => {
  await commit('file', 'one\n', 'one')
  await commit('file', 'two\n', 'two')
  await git.reset(repo, { mode: 'soft', target: 'HEAD~1' })
  assert.deepEqual((await git.status(repo)).fileStatus.map((file) => [file.name, file.staged]), [['file', true]])
  await git.restore(repo, { paths: ['file'], staged: true })
  assert.deepEqual((await git.status(repo)).fileStatus.map((file) => [file.name, file.staged]), [['file', false]])
  assert.equal(await sandbox.files.read(`${repo}/file`), 'two\n')
  await git.restore(repo, { paths: ['file'] })
  assert.equal(await sandbox.files.read(`${repo}/file`), 'one\n')
  await sandbox.files.write(`${repo}/file`, 'changed\n')
  await git.reset(repo, { mode: 'hard' })
  assert.equal(await sandbox.files.read(`${repo}/file`), 'one\n')
  await rejects(git.reset(repo, { mode: 'wild' }), InvalidArgumentError)
})

test('remotes, push, clone and pull', { skip }, async () => {
  assert.equal(await git.remoteGet(repo, 'origin'), undefined)
  await git.remoteAdd(repo, 'origin', 'git://127.0.0.1/elsewhere.git')
  assert.equal(await git.remoteGet(repo, 'origin'), 'git://127.0.0.1/elsewhere.git')
  await git.remoteAdd(repo, 'origin', url, { overwrite: true })
  assert.equal(await git.remoteGet(repo, 'origin'), url)

  await rejects(git.push(repo), e2b.GitUpstreamError)
  await git.push(repo, { remote: 'origin', branch: 'main' })
  const status = await git.status(repo)
  assert.deepEqual([status.upstream, status.ahead, status.behind], ['origin/main', 0, 0])

  const clone = '/tmp/git/clone'
  await git.clone(url, { path: clone })
  assert.ok((await sandbox.files.read(`${clone}/README.md`)).startsWith('hello\n'))
  await git.clone(url, { path: '/tmp/git/shallow', branch: 'main', depth: 1 })
  assert.equal(await run('git -C /tmp/git/shallow rev-list --count HEAD'), '1\n')

  await commit('later', 'text\n', 'later')
  assert.equal((await git.status(repo)).ahead, 1)
  // With an upstream neither a remote nor a branch needs to be named.
  await git.push(repo)
  await git.pull(clone)
  assert.equal(await sandbox.files.read(`${clone}/later`), 'text\n')
  await rejects(git.clone('git://127.0.0.1:9418/missing.git', { path: '/tmp/git/missing' }), e2b.GitAuthError)
})

test('configuration, user and credentials', { skip }, async () => {
  assert.equal(await git.getConfig('pull.rebase'), undefined)
  await git.setConfig('pull.rebase', 'false')
  await git.setConfig('pull.rebase', 'true', { scope: 'local', path: repo })
  assert.equal(await git.getConfig('pull.rebase'), 'false')
  assert.equal(await git.getConfig('pull.rebase', { scope: 'local', path: repo }), 'true')

  await git.configureUser('Grace', 'grace@example.com')
  await git.commit(repo, 'as configured', { allowEmpty: true })
  assert.equal(await run("git log -1 --format='%an <%ae>'"), 'Grace <grace@example.com>\n')

  await git.dangerouslyAuthenticate({ username: 'ada', password: 's3cret', host: 'git.example.com' })
  assert.equal(await git.getConfig('credential.helper'), 'store')
  assert.equal(await sandbox.files.read('.git-credentials'), 'https://ada:s3cret@git.example.com\n')
  await rejects(git.clone(url, { username: 'ada', password: 'x' }), InvalidArgumentError)
})

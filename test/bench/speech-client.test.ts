import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { spokenFile } from '#test/support/spoken-files.ts'

/** The example client, as a user runs it, with the built-in engine. */

let gateway: Gateway
let folder: string

const program = join(import.meta.dir, '../../bench/speech-client.ts')
/** Longer than the credit of a session, so a client that ignores it would be disconnected. */
const { file } = spokenFile([40, 60, 50, 70])
const seconds = (file.size - 44) / 32_000

beforeAll(async () => {
  gateway = await startGateway()
  folder = mkdtempSync(join(tmpdir(), 'sluice-speech-client-'))
  writeFileSync(join(folder, 'talk.wav'), new Uint8Array(await file.arrayBuffer()))
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function runClient(words: readonly string[], token: string, path = '') {
  const child = Bun.spawn([process.execPath, program, '--url', gateway.url, ...words], {
    cwd: folder,
    env: { PATH: `${path}:${process.env['PATH']}`, TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, stdout, stderr }
}

const fourFinals = /^(\d+\.\d\ds \[speech \d\.\d\d s, level -\d+ dBFS\]\n){4}$/

test('streams a file and prints transcripts with times', async () => {
  const { code, stdout, stderr } = await runClient(['talk.wav'], await gateway.token())
  expect(stderr).toContain(`${seconds * 1000} ms of audio`)
  expect(stderr).toContain('… [speech')
  expect(stderr).toContain('recognises no words. The operator installs one that does with: bun run')
  expect(stdout).toMatch(fourFinals)
  expect(stdout).toStartWith('0.5')
  expect(code).toBe(0)
})

test('streams a microphone until the recorder ends', async () => {
  const recorder = join(folder, 'arecord')
  writeFileSync(recorder, '#!/bin/sh\ntail -c +45 talk.wav\n')
  chmodSync(recorder, 0o755)
  const words = ['--microphone', '--lang', 'sk']
  const { code, stdout, stderr } = await runClient(words, await gateway.token(), folder)
  expect(stderr).toContain(`${seconds * 1000} ms of audio`)
  expect(stdout).toMatch(fourFinals)
  expect(code).toBe(0)
})

test('prints a refusal and exits with an error', async () => {
  const { code, stdout, stderr } = await runClient(['talk.wav'], 'no-token')
  expect(stderr).toStartWith('unauthorized: ')
  expect(stdout).toBe('')
  expect(code).toBe(1)
})

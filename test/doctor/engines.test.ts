import { afterEach, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { type StubScript, stubCommand } from '#test/support/stub-program/script.ts'
import { runDoctor } from './run-doctor.ts'

/** The doctor: speech engines, with real programs and real servers. */

afterEach(stopProcesses)

function program(name: string, command: readonly string[], more = ''): string {
  return `[[engine]]\nname = "${name}"\nkind = "exec"\ncommand = ${JSON.stringify(command)}\n${more}\n`
}

function stub(name: string, script: Partial<StubScript>, more = ''): string {
  return program(name, stubCommand(script), more)
}

test('a program that becomes ready passes, and is stopped afterwards', async () => {
  const startsFile = join(temporaryFolder(), 'starts')
  const { exitCode, finding } = await runDoctor({ toml: stub('good', { startsFile }, 'warm = 3') })
  expect(exitCode).toBe(0)
  expect(finding('speech engine "good"')).toMatchObject({ verdict: 'ok' })
  const pids = readFileSync(startsFile, 'utf8').trim().split('\n').map(Number)
  expect(pids.length).toBe(1)
  expect(pids.filter(isAlive)).toEqual([])
})

test('programs that are missing, exit, stay silent or refuse are reported one by one', async () => {
  const startsFile = join(temporaryFolder(), 'starts')
  const { exitCode, finding } = await runDoctor({
    toml: [
      program('missing', ['/nowhere/stt', '--model', 'x']),
      program('unknown', ['no-such-program-here']),
      program('no-program', [import.meta.path]),
      stub('ending', { atStart: 'exit' }),
      stub('silent', { atStart: 'silence', startsFile }, 'open_ms = 300'),
      stub('refusing', { atStart: 'refuse' }),
    ].join('\n'),
  })
  const detailOf = (name: string) => finding(`speech engine "${name}"`).detail
  expect(exitCode).toBe(1)
  expect(detailOf('missing')).toBe('no such program: "/nowhere/stt"')
  expect(detailOf('unknown')).toContain('no such program')
  expect(detailOf('no-program')).toContain('no such program')
  expect(detailOf('ending')).toContain('before it was ready')
  expect(detailOf('silent')).toContain('not ready within 300 ms')
  expect(finding('speech engine "refusing"').verdict).toBe('fail')
  expect(existsSync(startsFile)).toBe(true)
  expect(isAlive(Number(readFileSync(startsFile, 'utf8')))).toBe(false)
})

test('a server that opens a session passes; others fail with the reason', async () => {
  const key = 'speech-key-0123456789'
  using good = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response('no', { status: 400 }),
    websocket: { message() {} },
  })
  using refusing = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response(`bad key ${key}`, { status: 401 }),
  })
  const server = (name: string, port: number | undefined) =>
    `[[engine]]\nname = "${name}"\nkind = "vosk"\nurl = "ws://127.0.0.1:${port}"\nkey = "${key}"\nlanguages = ["en"]\n`
  const { exitCode, finding, stdout } = await runDoctor({
    toml: server('good', good.port) + server('refusing', refusing.port) + server('away', 1),
  })
  expect(exitCode).toBe(1)
  expect(finding('speech engine "good"').verdict).toBe('ok')
  expect(finding('speech engine "refusing"').detail).toContain('401')
  expect(finding('speech engine "refusing"').advice).toContain('key')
  expect(finding('speech engine "away"').advice).toContain('Start it')
  expect(stdout).not.toContain(key)
})

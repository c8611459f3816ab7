import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { createFlite, type Flite } from '#inference/upstreams/flite/adapter.ts'
import { AppError } from '#lib/errors.ts'
import { makeContext } from '#test/support/generation.ts'
import { childrenOf } from '#test/support/process.ts'

/** The processes of the local voice, and the texts that wait for them. */

const installed = process.env['SLUICE_TEST_VOICE']

let flite: Flite | undefined
afterEach(() => flite?.close())

function open(queueMax: number): Flite {
  const settings = { packageFolder: installed ?? '', processesMax: 1, queueMax }
  flite = createFlite({ settings, environment: process.env, log: { warn: () => {} } })
  return flite
}

const input = { text: 'Good morning.', voice: 'slt', format: 'pcm' } as const

/** Speaks a text and returns how many bytes it has. */
async function speak(voice: Flite, signal = new AbortController().signal): Promise<number> {
  const opened = await voice.speak?.(input, makeContext({ signal }))
  let bytes = opened?.first.length ?? 0
  for (let next = await opened?.next(); next != null; next = await opened?.next()) {
    bytes += next.length
  }
  return bytes
}

const failureOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => null,
    (error: unknown) => error,
  )

function speakers(): readonly number[] {
  return childrenOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('speak-text')
    } catch {
      return false
    }
  })
}

describe.skipIf(installed === undefined)('the local voice', () => {
  test('speaks texts one after the other, in one process', async () => {
    const voice = open(1)
    const both = await Promise.all([speak(voice), speak(voice)])
    expect(both[0]).toBeGreaterThan(10_000)
    expect(both[1]).toBe(both[0])
    const [pid, ...others] = speakers()
    expect(others).toEqual([])
    expect(await speak(voice)).toBe(both[0])
    expect(speakers()).toEqual([pid ?? 0])
  })

  test('refuses a text that finds the queue full, and serves the next one', async () => {
    const voice = open(1)
    const spoken = [speak(voice), speak(voice)]
    expect(await failureOf(speak(voice))).toMatchObject({
      kind: 'upstream_overloaded',
      retryAfterS: 5,
    })
    await Promise.all(spoken)
    expect(await speak(voice)).toBeGreaterThan(0)
  })

  test('a client that leaves while it waits frees its place', async () => {
    const voice = open(1)
    const running = speak(voice)
    const client = new AbortController()
    const waiting = failureOf(speak(voice, client.signal))
    const reason = new AppError('client_closed', 'The client disconnected.')
    client.abort(reason)
    expect(await waiting).toBe(reason)
    const next = speak(voice)
    expect(await running).toBe(await next)
    expect(await failureOf(speak(voice, client.signal))).toBe(reason)
  })

  test('a process that exited is replaced', async () => {
    const voice = open(0)
    const bytes = await speak(voice)
    const [pid = 0] = speakers()
    process.kill(pid, 'SIGKILL')
    // Until then it is a zombie, whose end is not known here.
    while (existsSync(`/proc/${pid}`)) await Bun.sleep(5)
    expect(await speak(voice)).toBe(bytes)
  })

  test('a closed one has no processes', async () => {
    const voice = open(0)
    await speak(voice)
    expect(speakers()).toHaveLength(1)
    await voice.close()
    expect(speakers()).toEqual([])
  })
})

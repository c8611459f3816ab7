import { afterEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '#test/support/eventually.ts'
import { makeContext, makeRequest } from '#test/support/generation.ts'
import {
  endless,
  finishOf,
  type LlamaWorld,
  lacksLlama,
  startLlama,
  textOf,
} from '#test/support/llama.ts'
import { isAlive, killProcess } from '#test/support/process.ts'

/** Model processes: slots, memory, and recovery from crashes. */

let world: LlamaWorld
afterEach(() => world.stop())

/** A generation that runs until it is stopped. */
async function begin(signal?: AbortSignal, name = 'tiny') {
  const batches = world.generate({ name, ...(signal ? { signal } : {}) })[Symbol.asyncIterator]()
  const first = await batches.next()
  return { batches, first: first.done ? [] : first.value }
}

async function untilText({ batches }: Awaited<ReturnType<typeof begin>>): Promise<void> {
  for (;;) {
    const next = await batches.next()
    if (next.done || next.value.some(({ type }) => type === 'text-delta')) return
  }
}

describe.skipIf(lacksLlama)('slots of a model', () => {
  test('more generations than sequences are queued and served in order', async () => {
    world = startLlama({ sequencesMax: 2, queueMax: 10 })
    const answers = await Promise.all(Array.from({ length: 7 }, () => world.ask({ maxTokens: 25 })))
    expect(answers.map(({ error }) => error)).toEqual(answers.map(() => null))
    expect(answers.map(({ text }) => text.length)).toEqual(answers.map(() => 25))
    expect(world.processes()).toHaveLength(1)
  })

  test('a full queue rejects with Retry-After', async () => {
    world = startLlama({ sequencesMax: 1, queueMax: 1 })
    const leaving = new AbortController()
    const running = await begin(leaving.signal)
    const waiting = world.ask({ maxTokens: 3 })
    // The files are asked for each, and might answer the second one first.
    await eventually('one waits', async () => {
      const [use] = await world.llama.usesOf('tiny')
      return use?.includes('2 requests') === true
    })
    const { error } = await world.ask({ maxTokens: 3 })
    expect(error?.kind).toBe('upstream_overloaded')
    expect([error?.status, error?.retryAfterS]).toEqual([503, 2])
    leaving.abort()
    await running.batches.next().catch(() => {})
    expect((await waiting).error).toBeNull()
  })

  test('an aborted request leaves the queue', async () => {
    world = startLlama({ sequencesMax: 1, queueMax: 1 })
    const running = await begin()
    const leaving = new AbortController()
    const waiting = begin(leaving.signal)
    leaving.abort(new Error('gone'))
    expect(await waiting.catch(({ message }) => message)).toBe('gone')
    const next = world.ask({ maxTokens: 3 })
    await running.batches.return?.()
    expect((await next).error).toBeNull()
  })

  test('a cancelled generation is stopped, and its slot released', async () => {
    world = startLlama({ sequencesMax: 1, queueMax: 1 })
    for (let round = 0; round < 3; round++) {
      const leaving = new AbortController()
      const running = await begin(leaving.signal)
      await untilText(running)
      leaving.abort(new Error('gone'))
      expect(await running.batches.next().catch(({ message }) => message)).toBe('gone')
    }
    expect((await world.ask({ maxTokens: 5 })).text).toHaveLength(5)
    expect(world.processes()).toHaveLength(1)
  })

  test('a cancelled call stops in the middle of a long prompt', async () => {
    world = startLlama({ sequencesMax: 1, contextTokensMax: 65_536 })
    world.install('reader', { ...endless, contextTokens: 65_536 })
    await world.ask({ name: 'reader', maxTokens: 1 })
    const long = { type: 'message', role: 'user' } as const
    const items = [{ ...long, parts: [{ type: 'text' as const, text: 'a'.repeat(60_000) }] }]
    const leaving = new AbortController()
    const reading = world.ask({ name: 'reader', items, signal: leaving.signal })
    await eventually('it reads', async () => (await world.llama.usesOf('reader')).length > 0)
    leaving.abort(new Error('gone'))
    await reading
    const next = await world.ask({ name: 'reader', maxTokens: 5 })
    expect(next.text).toHaveLength(5)
  })

  test('backpressure of a slow consumer pauses the model', async () => {
    world = startLlama({ sequencesMax: 2, contextTokensMax: 2_048 })
    const slow = await begin()
    // As much as others get while it reads nothing.
    expect((await world.ask({ maxTokens: 500 })).text).toHaveLength(500)
    const waiting = await slow.batches.next()
    const held = waiting.done ? [] : waiting.value
    expect(textOf(held).length).toBeWithin(1, 40)
    await slow.batches.return?.()
  })
})

describe.skipIf(lacksLlama)('a model process', () => {
  test('that is killed fails its calls, and the next request starts a new one', async () => {
    world = startLlama({ sequencesMax: 2 })
    const running = await begin()
    await untilText(running)
    const [pid = 0] = world.processes()
    killProcess(pid)
    const failure = (async () => {
      for (let over = false; !over; ) over = (await running.batches.next()).done === true
    })()
    expect(await failure.catch(({ kind }) => kind)).toBe('upstream_error')
    const { text, error } = await world.ask({ maxTokens: 10 })
    expect(error).toBeNull()
    expect(text).toHaveLength(10)
    expect(world.processes()).not.toContain(pid)
    expect(world.logged('model process exited')).toBe(1)
  })

  test('that fails repeatedly is restarted with a delay', async () => {
    world = startLlama()
    world.install('half', { withoutTensor: 'output_norm.weight' })
    const kinds: (string | undefined)[] = []
    // The delays are 250 ms, 500 ms and so on; a delay above 2 s is refused.
    while (kinds.length < 10 && kinds.at(-1) !== 'upstream_overloaded') {
      kinds.push((await world.ask({ name: 'half' })).error?.kind)
    }
    expect(kinds.slice(0, 3)).toEqual(Array(3).fill('upstream_refused'))
    expect(kinds.at(-1)).toBe('upstream_overloaded')
    expect(world.logged('model load failed')).toBe(kinds.length - 1)
    expect(world.processes()).toEqual([])
    // Other calls are not affected.
    expect((await world.ask({ maxTokens: 3 })).error).toBeNull()
  })

  test('is not started for a file that is not a model', async () => {
    world = startLlama()
    const path = join(world.folder, 'broken.gguf')
    writeFileSync(path, 'GGUF but not really')
    world.install('broken', path)
    expect((await world.ask({ name: 'broken' })).error?.kind).toBe('upstream_refused')
    const listed = await world.llama.listModels(makeContext())
    expect(listed.map(({ id }) => id)).toEqual(['tiny'])
  })

  test('is unloaded when idle, and loaded again on demand', async () => {
    world = startLlama({ idleMs: 1 })
    await world.ask({ maxTokens: 3 })
    await eventually('it is out of memory', () => world.logged('model unloaded') === 1)
    expect(world.processes()).toEqual([])
    expect((await world.ask({ maxTokens: 3 })).error).toBeNull()
  })

  test('is evicted for another model when idle', async () => {
    world = startLlama({ modelsLoadedMax: 1 })
    world.install('other', endless)
    await world.ask({ maxTokens: 3 })
    const [first] = world.processes()
    expect((await world.ask({ name: 'other', maxTokens: 3 })).error).toBeNull()
    expect(world.processes()).toHaveLength(1)
    expect(world.processes()).not.toContain(first ?? 0)

    const running = await begin(undefined, 'other')
    const { error } = await world.ask({ maxTokens: 3 })
    expect([error?.kind, error?.retryAfterS]).toEqual(['upstream_overloaded', 5])
    // A count evicts no model either.
    const counted = world.llama.countTokens?.(makeRequest(), makeContext({ model: 'tiny' }))
    expect(await counted?.catch(({ kind }) => kind)).toBe('upstream_overloaded')
    await running.batches.return?.()
  })

  test('respects the memory limit', async () => {
    world = startLlama()
    const { bytes } = world.install('measured', endless)
    await world.stop()
    world = startLlama({ memoryBytesMax: Math.floor(bytes * 1.5) })
    world.install('other', endless)
    await world.ask({ maxTokens: 3 })
    expect((await world.ask({ name: 'other', maxTokens: 3 })).error).toBeNull()
    expect(world.processes()).toHaveLength(1)
    await world.stop()
    world = startLlama({ memoryBytesMax: bytes - 1 })
    const { error } = await world.ask({ maxTokens: 3 })
    expect(error?.kind).toBe('upstream_refused')
    expect(error?.message).toContain('exceeds')
  })

  test('fails to load after the timeout', async () => {
    world = startLlama({ loadMs: 1 })
    const { error } = await world.ask({ maxTokens: 3 })
    expect(error?.kind).toBe('upstream_first_event_timeout')
    await eventually('it is gone', () => world.processes().length === 0)
  })

  test('is reported while in use, and unloaded before its files are deleted', async () => {
    world = startLlama({ sequencesMax: 2 })
    expect(await world.llama.usesOf('tiny')).toEqual([])
    const runs = [await begin(), await begin()]
    expect(await world.llama.usesOf('tiny')).toEqual(['The model tiny is serving 2 requests.'])
    expect(await world.llama.usesOf('another')).toEqual([])
    for (const { batches } of runs) await batches.return?.()
    await eventually('they are free', async () => (await world.llama.usesOf('tiny')).length === 0)
    expect(world.processes()).toEqual([])
  })

  test('of a removed model is stopped at the next refresh', async () => {
    world = startLlama()
    await world.ask({ maxTokens: 3 })
    world.uninstall('tiny')
    expect(await world.llama.listModels(makeContext())).toEqual([])
    expect(world.processes()).toEqual([])
    expect((await world.ask({ maxTokens: 3 })).error?.kind).toBe('model_not_found')
  })

  test('of a replaced file is restarted', async () => {
    world = startLlama()
    const before = await world.ask({ maxTokens: 20 })
    world.install('tiny', { ...endless, seed: 99 })
    const after = await world.ask({ maxTokens: 20 })
    expect(after.text).not.toBe(before.text)
    await eventually('the one before is gone', () => world.processes().length === 1)
  })

  test('ends with its parent process, however that ends', async () => {
    world = startLlama()
    const program = join(import.meta.dir, '../../../support/llama-parent/program.ts')
    const parent = Bun.spawn([process.execPath, program, world.install('tiny').path], {
      env: { ...process.env, TMPDIR: world.folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const reader = parent.stdout.getReader()
    let said = ''
    while (!said.includes('\n')) said += new TextDecoder().decode((await reader.read()).value)
    const pid = Number(said)
    expect(isAlive(pid)).toBeTrue()
    parent.kill('SIGKILL')
    await eventually('the model is gone as well', () => !isAlive(pid))
  })
})

test('without the package no model is listed, and requests fail with the install command', async () => {
  world = startLlama({ packageFolder: '/nowhere' })
  for (let look = 0; look < 2; look++) {
    expect(await world.llama.listModels(makeContext())).toEqual([])
  }
  expect(world.logged('installed models unavailable')).toBe(1)
  const { error } = await world.ask({ maxTokens: 3 })
  expect(error?.kind).toBe('service_unavailable')
  expect(error?.message).toContain('bun run llama:install')
  expect(finishOf((await world.ask({})).events)).toBeUndefined()
})

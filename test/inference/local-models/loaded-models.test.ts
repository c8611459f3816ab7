import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { LoadedModels, type LoadedModelsOptions } from '#inference/local-models/loaded-models.ts'
import type { LoadableProcess, LocalModel, ModelFile } from '#inference/local-models/local-model.ts'
import { AppError } from '#lib/errors.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Which models are in memory, and when. The clock advances by hand; processes are stand-ins. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const idleMs = 60_000
const signal = new AbortController().signal
const file = (name: string, { bytes = 10, key = name } = {}): ModelFile => ({
  model: { name, installedAs: `installed ${name}`, path: `/${name}`, bytes },
  key,
})

type Given = Partial<LoadedModelsOptions<LocalModel, LoadableProcess>['settings']> & {
  fails?: boolean
}

function start({ fails = false, ...settings }: Given = {}) {
  const state = { fails, events: [] as string[] }
  const processes: { name: string; exit(): void }[] = []
  const models = new LoadedModels({
    settings: { sequencesMax: 2, queueMax: 1, idleMs, modelsLoadedMax: 2, ...settings },
    start({ name }) {
      state.events.push(`start ${name}`)
      const exited = Promise.withResolvers<{ isExpected: boolean }>()
      const exit = (isExpected: boolean) => exited.resolve({ isExpected })
      processes.push({ name, exit: () => exit(false) })
      if (state.fails) exit(false)
      return {
        pid: 1,
        loaded: state.fails
          ? Promise.reject(new AppError('upstream_refused', 'The model does not load.'))
          : Promise.resolve({ contextTokens: 4_096 }),
        exited: exited.promise,
        async stop() {
          state.events.push(`stop ${name}`)
          exit(true)
        },
      }
    },
    log: quietLog,
  })
  return { models, state, processes }
}

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

/** Uses a model once. */
async function use(
  models: LoadedModels<LocalModel, LoadableProcess>,
  asked: ModelFile,
): Promise<void> {
  const slot = await models.acquire(asked, signal)
  slot.succeeded()
  slot.release()
}

async function refusal(work: Promise<unknown>) {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof AppError)) throw new Error('it was not refused')
  return [error.kind, error.retryAfterS]
}

test('a model is loaded once for all who ask, and stays until it was idle for a time', async () => {
  const { models, state } = start()
  expect(models.contextTokens('a')).toBeNull()
  const [one, two] = await Promise.all([
    models.acquire(file('a'), signal),
    models.acquire(file('a'), signal),
  ])
  expect(one.process).toBe(two.process)
  expect(models.contextTokens('a')).toBe(4_096)
  expect(models.usedBy('installed a')).toEqual([{ name: 'a', count: 2 }])
  one.release()
  await pass(idleMs)
  expect(models.usedBy('installed a')).toEqual([{ name: 'a', count: 1 }])
  two.release()
  expect([models.usedBy('installed a'), models.usedBy('installed b')]).toEqual([[], []])
  await pass(idleMs - 1)
  await use(models, file('a'))
  await pass(idleMs - 1)
  expect(state.events).toEqual(['start a'])
  await pass(1)
  expect(state.events).toEqual(['start a', 'stop a'])
  expect(models.contextTokens('a')).toBeNull()
})

test('idle models make room, the one that was used longest ago first', async () => {
  const { models, state } = start()
  for (const name of ['a', 'b', 'a']) {
    await use(models, file(name))
    await pass(10)
  }
  await use(models, file('c'))
  expect(state.events).toEqual(['start a', 'start b', 'stop b', 'start c'])
  const held = await models.acquire(file('a'), signal)
  const other = await models.acquire(file('c'), signal)
  expect(await refusal(models.acquire(file('b'), signal))).toEqual(['upstream_overloaded', 5])
  other.release()
  expect(await refusal(models.loadWithoutEviction(file('b'), signal))).toEqual([
    'upstream_overloaded',
    5,
  ])
  await use(models, file('b'))
  expect(state.events.slice(4)).toEqual(['stop c', 'start b'])
  held.release()
})

test('the files of all models in memory have a limit', async () => {
  const { models, state } = start({ memoryBytesMax: 30, modelsLoadedMax: 9 })
  expect(await refusal(models.acquire(file('huge', { bytes: 31 }), signal))).toEqual([
    'upstream_refused',
    undefined,
  ])
  for (const name of ['a', 'b', 'c']) {
    await use(models, file(name))
    await pass(10)
  }
  expect(state.events).toEqual(['start a', 'start b', 'start c'])
  await use(models, file('large', { bytes: 20 }))
  expect(state.events.slice(3)).toEqual(['stop a', 'stop b', 'start large'])
})

test('a model that fails is started again after a growing delay, until it succeeds', async () => {
  const { models, state, processes } = start({ fails: true })
  const attempt = () => refusal(models.acquire(file('a'), signal))
  expect(await attempt()).toEqual(['upstream_refused', undefined])
  for (const delayMs of [250, 500, 1_000, 2_000]) {
    const starts = state.events.length
    const next = attempt()
    await pass(delayMs - 1)
    expect(state.events).toHaveLength(starts)
    await pass(1)
    expect(state.events).toHaveLength(starts + 1)
    expect(await next).toEqual(['upstream_refused', undefined])
  }
  // Longer delays are not waited for.
  expect(await attempt()).toEqual(['upstream_overloaded', 4])
  await pass(1_000)
  expect(await attempt()).toEqual(['upstream_overloaded', 3])
  await pass(3_000)
  state.fails = false
  await use(models, file('a'))
  processes.at(-1)?.exit()
  await pass(0)
  expect(models.contextTokens('a')).toBeNull()
  const again = models.acquire(file('a'), signal)
  await pass(250)
  ;(await again).release()
})

test('a replaced file is loaded anew, when the old one is idle', async () => {
  const { models, state } = start()
  const held = await models.acquire(file('a'), signal)
  const old = await models.acquire(file('a', { key: 'new' }), signal)
  expect(old.process).toBe(held.process)
  held.release()
  old.release()
  await use(models, file('a', { key: 'new' }))
  expect(state.events.toSorted()).toEqual(['start a', 'start a', 'stop a'])
})

test('only idle models that match are unloaded', async () => {
  const { models, state } = start({ modelsLoadedMax: 3 })
  for (const name of ['a', 'b']) await use(models, file(name))
  const held = await models.acquire(file('c'), signal)
  await models.unload(({ name }) => name !== 'b')
  expect(state.events.slice(3)).toEqual(['stop a'])
  held.release()
})

test('after closing, every model is unloaded and none is loaded', async () => {
  const { models, state } = start()
  await use(models, file('a'))
  const loading = models.loadWithoutEviction(file('b'), signal)
  await models.close()
  await loading
  await pass(0)
  expect(state.events.toSorted()).toEqual(['start a', 'start b', 'stop a', 'stop b'])
  expect(await refusal(models.acquire(file('a'), signal))).toEqual(['draining', undefined])
})

test('a caller that leaves frees its place while the model loads', async () => {
  const { models } = start({ sequencesMax: 1 })
  const caller = new AbortController()
  const leaving = models.acquire(file('a'), caller.signal)
  caller.abort(new Error('left'))
  await expect(leaving).rejects.toThrow('left')
  await use(models, file('a'))
  expect(models.usedBy('installed a')).toEqual([])
})

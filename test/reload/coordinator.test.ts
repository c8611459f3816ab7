import { expect, test } from 'bun:test'
import type { ConfigFile } from '#config/config-file.ts'
import { loadConfig, ruleFaults } from '#config/load.ts'
import { createCoordinator } from '#reload/coordinator.ts'
import type { SupervisorMessage } from '#reload/messages.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The supervisor's end of reloads, with workers of the test. */

const fileWith = (text: string | null): ConfigFile => ({ path: 'sluice.toml', text, fault: null })
const load = (file: ConfigFile) => loadConfig({}, [], file)

function start(given: { replyMs?: number } = {}) {
  const started = fileWith('[retrieval]\nk = 1')
  const disk = { file: started, reads: 0 }
  const accepted: number[] = []
  const coordinator = createCoordinator({
    files: { started, accepted: started },
    config: load(started),
    readFile() {
      disk.reads++
      return disk.file
    },
    load,
    faultsOf: (config) => ruleFaults(config, []),
    log: quietLog,
    onAccepted: ({ retrieval }) => void accepted.push(retrieval.k),
    ...given,
  })
  const worker = (pid: number, fault?: string | null) => {
    const messages: SupervisorMessage[] = []
    const link = coordinator.connect(pid, (message) => {
      messages.push(message)
      if (message.type === 'reload' && fault !== undefined) {
        link.received({ type: 'reloaded', id: message.id, fault })
      }
    })
    return { ...link, messages }
  }
  return {
    coordinator,
    disk,
    accepted,
    worker,
    write(k: number) {
      disk.file = fileWith(`[retrieval]\nk = ${k}`)
    },
  }
}

const statesOf = (
  report: Awaited<ReturnType<ReturnType<typeof start>['coordinator']['reload']>>,
) => (report.outcome === 'reloaded' ? report.workers.map(({ pid, state }) => [pid, state]) : null)

test('requests during a reload read the file once more, after the last of them', async () => {
  const { coordinator, disk, write, accepted, worker } = start()
  const slow = worker(1)
  slow.ready()
  const confirm = () => {
    const message = slow.messages.at(-1)
    if (message?.type === 'reload') slow.received({ type: 'reloaded', id: message.id, fault: null })
  }
  const reports = [coordinator.reload()]
  await eventually('the first one has begun', () => slow.messages.length === 1)
  for (let k = 2; k <= 30; k++) {
    write(k)
    reports.push(coordinator.reload())
    await Promise.resolve()
  }
  expect(disk.reads).toBe(1)
  confirm()
  await eventually('the second one has begun', () => slow.messages.length === 2)
  confirm()
  await Promise.all(reports)
  expect(disk.reads).toBe(2)
  expect(accepted).toEqual([1, 30])
})

test('every worker gets the same text; one that starts later gets what was accepted', async () => {
  const { coordinator, write, disk, worker } = start()
  const [first, second] = [worker(1, null), worker(2, null)]
  first.ready()
  second.ready()
  write(5)
  await coordinator.reload()
  const texts = [first, second].map(({ messages: [message] }) =>
    message?.type === 'reload' ? message.file.text : null,
  )
  expect(texts).toEqual(['[retrieval]\nk = 5', '[retrieval]\nk = 5'])
  disk.file = fileWith('= not valid')
  expect(await coordinator.reload()).toMatchObject({ outcome: 'invalid' })
  expect(coordinator.files()).toEqual({
    started: fileWith('[retrieval]\nk = 1'),
    accepted: fileWith('[retrieval]\nk = 5'),
  })
  expect(first.messages).toHaveLength(1)
})

test('the report has the state of each worker', async () => {
  const { coordinator, write, worker } = start({ replyMs: 1 })
  worker(1, null).ready()
  worker(2, 'no database').ready()
  worker(3).ready()
  const starting = worker(4)
  const stopped = worker(5)
  stopped.ready()
  write(5)
  const report = coordinator.reload()
  await Promise.resolve()
  await Promise.resolve()
  stopped.exited()
  expect(statesOf(await report)).toEqual([
    [1, 'reloaded'],
    [2, 'failed'],
    [3, 'unresponsive'],
    [4, 'starting'],
    [5, 'stopped'],
  ])
  expect(starting.messages).toHaveLength(1)
})

test('the worker that was asked records the reload; after a signal, one that is ready', async () => {
  const { coordinator, write, worker } = start()
  const workers = [worker(1, null), worker(2, null), worker(3, null)]
  const [, second, third] = workers
  second?.ready()
  third?.ready()
  const initiators = () =>
    workers.map(({ messages }) => {
      const message = messages.findLast(({ type }) => type === 'reload')
      return message?.type === 'reload' ? message.initiator : undefined
    })
  write(2)
  await coordinator.reload()
  expect(initiators()).toEqual([null, { actor: null }, null])
  write(3)
  const actor = { userId: 'root', keyId: null, requestId: 'req_1', ipAddress: null }
  third?.received({ type: 'reload-request', id: 7, actor })
  await coordinator.reload()
  expect(initiators()).toEqual([null, null, { actor }])
  expect(third?.messages.at(-1)).toMatchObject({
    type: 'reload-report',
    id: 7,
    report: { outcome: 'reloaded', changed: [{ key: 'retrieval.k', before: 2, after: 3 }] },
  })
})

test('a gateway that stops reloads nothing', async () => {
  const { coordinator, write, disk, accepted } = start()
  write(5)
  coordinator.stop()
  expect(await coordinator.reload()).toEqual({ outcome: 'stopping' })
  expect([disk.reads, accepted]).toEqual([0, []])
})

test('a file that has disappeared is not an empty one', async () => {
  const { coordinator, disk, accepted } = start()
  disk.file = fileWith(null)
  expect(await coordinator.reload()).toEqual({
    outcome: 'invalid',
    faults: ['sluice.toml: no such file.'],
  })
  expect(accepted).toEqual([])
})

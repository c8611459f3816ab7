import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { niceVariable } from '#lib/compute-process.ts'

const program = join(import.meta.dir, '../support/compute-program/program.ts')

/** Resolves with the process and its nice value. */
function start(environment: Record<string, string>) {
  const started = Promise.withResolvers<number>()
  const child = Bun.spawn([process.execPath, program], {
    env: environment,
    ipc: (nice: number) => started.resolve(nice),
  })
  return started.promise.then((nice) => ({ child, nice }))
}

test('a compute process has the nice value that it is told', async () => {
  const [told, untold] = await Promise.all([start({ [niceVariable]: '7' }), start({})])
  expect(told.nice).toBe(7)
  expect(untold.nice).toBe(0)
  for (const { child } of [told, untold]) child.kill('SIGKILL')
})

test('a compute process outlives signals to its group, and ends with the gateway', async () => {
  const { child } = await start({})
  child.kill('SIGINT')
  child.kill('SIGTERM')
  child.disconnect()
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
})

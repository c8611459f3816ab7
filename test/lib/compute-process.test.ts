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

test('a compute process runs at the configured nice value', async () => {
  const [configured, unconfigured] = await Promise.all([start({ [niceVariable]: '7' }), start({})])
  expect(configured.nice).toBe(7)
  expect(unconfigured.nice).toBe(0)
  for (const { child } of [configured, unconfigured]) child.kill('SIGKILL')
})

test('a compute process outlives signals to its group, and ends with the gateway', async () => {
  const { child } = await start({})
  child.kill('SIGINT')
  child.kill('SIGTERM')
  child.disconnect()
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
})

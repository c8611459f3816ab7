import { afterAll, expect, test } from 'bun:test'
import { configFile, startGatewayProcess, stopProcesses } from '#test/support/process.ts'

afterAll(stopProcesses)

const requestsPerRound = 3

test('a worker serves requests of its own before it listens, and they leave no trace', async () => {
  const SLUICE_CONFIG = configFile('[limits.default]\nrequests_per_minute = 1\n')
  const environment = { SLUICE_WARM_UP_MS: '1000', SLUICE_CONFIG }
  const gateway = await startGatewayProcess({ environment })
  const { requests } = await gateway.logged('warmed up')
  expect(Number(requests)).toBeGreaterThanOrEqual(requestsPerRound)
  // Each of them succeeded.
  expect(Number(requests) % requestsPerRound).toBe(0)
  const messages = gateway
    .stdout()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).message)
  expect(messages.indexOf('warmed up')).toBeLessThan(messages.indexOf('listening'))
  expect(messages).not.toContain('request ended')

  const metrics = await (await fetch(`${gateway.url()}/metrics`)).text()
  expect(metrics).toMatch(/^sluice_limit_meters(\{.*\})? 0$/m)
  expect(metrics).not.toContain('warm-up')
  expect(metrics).not.toContain('sluice_http_requests_total{')
  const models = await (await gateway.request('/v1/models')).text()
  expect(models).toContain('demo')
  expect(models).not.toContain('warm-up')
  expect((await gateway.ask({ model: 'demo', input: 'hello' })).status).toBe(200)
})

test('neither limits nor access rules of models fail the requests of a worker', async () => {
  const SLUICE_CONFIG = configFile(
    '[limits.default]\nconcurrent_generations = 0\n[models]\naccess = [{ models = "*", groups = ["nobody"] }]\n',
  )
  const environment = { SLUICE_WARM_UP_MS: '1000', SLUICE_CONFIG }
  const gateway = await startGatewayProcess({ environment })
  const { requests } = await gateway.logged('warmed up')
  expect(Number(requests)).toBeGreaterThanOrEqual(requestsPerRound)
})

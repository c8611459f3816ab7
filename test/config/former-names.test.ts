import { afterEach, describe, expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { configFile, startGatewayProcess, stopProcesses } from '#test/support/process.ts'

/** Former names of configuration keys work for one release, with a warning. */

afterEach(stopProcesses)

const model = (toml: string, environment: Record<string, string> = {}) => {
  const config = loadConfig({ ...environment, SLUICE_CONFIG: configFile(`[retrieval]\n${toml}`) })
  const { retrieval, formerNames, sources } = config
  return {
    model: retrieval.rerankerModel,
    names: formerNames,
    source: sources['retrieval.reranker_model'],
  }
}

const key = { name: 'retrieval.rerank_model', use: 'retrieval.reranker_model' }
const variable = { name: 'SLUICE_RERANK_MODEL', use: 'SLUICE_RERANKER_MODEL' }
const file = { kind: 'file' as const }
const environment = { kind: 'environment' as const, variable: 'SLUICE_RERANKER_MODEL' }

describe('the reranker', () => {
  test('has one name in the file, in the environment and in the settings', () => {
    expect(model('reranker_model = "a"')).toEqual({ model: 'a', names: [], source: file })
    expect(model('', { SLUICE_RERANKER_MODEL: 'b' })).toEqual({
      model: 'b',
      names: [],
      source: environment,
    })
  })

  test('is found under its former names, which are reported', () => {
    expect(model('rerank_model = "a"')).toEqual({ model: 'a', names: [key], source: file })
    expect(model('rerank_model = "a"', { SLUICE_RERANK_MODEL: 'b' })).toEqual({
      model: 'b',
      names: [key, variable],
      source: environment,
    })
  })

  test('has the value of the present name where both are given', () => {
    expect(model('reranker_model = "a"\nrerank_model = "b"').model).toBe('a')
    const both = { SLUICE_RERANKER_MODEL: 'c', SLUICE_RERANK_MODEL: 'd' }
    expect(model('rerank_model = "b"', both).model).toBe('c')
  })
})

test('a former name is logged once at the start', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_RERANK_MODEL: 'demo' } })
  const line = await gateway.logged('configuration key deprecated')
  expect(line).toMatchObject({
    level: 'warn',
    key: 'SLUICE_RERANK_MODEL',
    use: 'SLUICE_RERANKER_MODEL',
  })
  const lines = gateway.log().filter(({ key }) => key === line['key'])
  expect(lines).toHaveLength(1)
})

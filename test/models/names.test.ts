import { expect, test } from 'bun:test'
import { createModelNames } from '#models/names.ts'

const names = createModelNames({ prefix: 'acme' })
const id = '01a1ff5c-90a1-7723-840a-77023c0ccf4d'

test.each([
  ['m', ['m']],
  ['acme-model-m', ['acme-model-m', 'm']],
  ['acme-model-org/m:7b', ['acme-model-org/m:7b', 'org/m:7b']],
  ['m[1m]', ['m[1m]', 'm']],
  ['acme-model-m[1m]', ['acme-model-m[1m]', 'acme-model-m', 'm[1m]', 'm']],
  ['vendor-model-m', ['vendor-model-m']],
  ['acme-model-', ['acme-model-', '']],
])('%s is looked up as %p', (name, spellings) => {
  expect(names.spellings(name)).toEqual(spellings)
})

test.each([
  [`acme-agent-${id}`, id],
  [`acme-agent-${id.toUpperCase()}`, id],
  [`acme-agent-${id}[1m]`, id],
  [id, id],
  [`vendor-agent-${id}`, undefined],
  [`acme-model-${id}`, undefined],
  [`acme-agent-${id}0`, undefined],
  ['acme-agent-', undefined],
  ['m', undefined],
])('%s names the agent %p', (name, agentId) => {
  expect(names.agentIdIn(name)).toBe(agentId)
})

test('listed names can be resolved', () => {
  expect(names.spellings(names.ofModel('org/m'))).toContain('org/m')
  expect(names.agentIdIn(names.ofAgent(id))).toBe(id)
})

import { expect, test } from 'bun:test'
import type { Agent } from '#agents/agents.ts'
import { applyAgent } from '#agents/apply.ts'
import { makeRequest } from '#test/support/generation.ts'
import { sampleAgent } from './sample-agent.ts'

/** Fields that only the Messages protocol has. */

const agent: Agent = {
  ...sampleAgent,
  sampling: { ...sampleAgent.sampling, topK: 7, reasoningEffort: 'high' },
}

test('without an agent a request is unchanged', () => {
  const request = makeRequest()
  expect(applyAgent(request, null)).toBe(request)
})

test('the original body is dropped', () => {
  const body = { model: 'x' }
  const origin = { protocol: 'messages', body, headers: {}, openSeal: () => null } as const
  expect(applyAgent(makeRequest({ origin }), agent)).not.toHaveProperty('origin')
})

test('a reasoning budget replaces the effort of the agent', () => {
  const request = makeRequest({ reasoning: { effort: null, summary: null, budgetTokens: 2_048 } })
  expect(applyAgent(request, agent).reasoning).toEqual(request.reasoning)
  expect(applyAgent(makeRequest(), agent).reasoning.effort).toBe('high')
})

test('sampling of the request takes precedence over that of the agent', () => {
  const { sampling } = makeRequest()
  expect(applyAgent(makeRequest(), agent).sampling.topK).toBe(7)
  const own = makeRequest({ sampling: { ...sampling, topK: 3 } })
  expect(applyAgent(own, agent).sampling.topK).toBe(3)
})

test('an agent without instructions does not change instructions', () => {
  const tools = makeRequest().tools
  const own = makeRequest({ instructions: 'Be brief.', tools })
  expect(applyAgent(own, agent)).toMatchObject({ instructions: 'Be brief.', tools })
  expect(applyAgent(makeRequest(), agent).instructions).toBeNull()
  expect(applyAgent(own, { ...agent, instructions: '' }).instructions).toBe('Be brief.')
})

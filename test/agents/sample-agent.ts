import type { Agent } from '#agents/agents.ts'

/** An agent with defaults that only its owner sees. */
export const sampleAgent: Agent = {
  id: '01a1ff5c-90a1-7723-840a-77023c0ccf4d',
  ownerId: '01a1ff5c-90a1-8723-840a-77023c0ccf4d',
  createdAt: new Date(0),
  updatedAt: new Date(0),
  name: 'A',
  description: null,
  model: 'm',
  instructions: null,
  tools: [],
  collections: [],
  sampling: {
    temperature: null,
    topP: null,
    topK: null,
    presencePenalty: null,
    frequencyPenalty: null,
    maxOutputTokens: null,
    reasoningEffort: null,
  },
  speech: null,
  visibility: { kind: 'owner' },
}

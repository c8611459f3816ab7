import type { Counts } from './count-calls.ts'

export type RequestCounts = Counts & { readonly request: string }

export const manyTokens = 40

const response = (fields: object) => JSON.stringify({ model: 'm', input: 'Hi.', ...fields })
const message = (fields: object) => {
  const messages = [{ role: 'user', content: 'Hi.' }]
  return JSON.stringify({ model: 'm', messages, max_tokens: manyTokens, ...fields })
}

/** The common requests. */
export const requests = [
  { name: 'response', path: '/v1/responses', body: response({ store: false }) },
  { name: 'stored response', path: '/v1/responses', body: response({}) },
  { name: 'stream', path: '/v1/responses', body: response({ store: false, stream: true }) },
  { name: 'stored stream', path: '/v1/responses', body: response({ stream: true }) },
  { name: 'message', path: '/compat/v1/messages', body: message({}) },
  { name: 'message stream', path: '/compat/v1/messages', body: message({ stream: true }) },
  { name: 'models', path: '/v1/models', body: null },
] as const

import { expect, test } from 'bun:test'
import { type RequestContext, withSignal } from '#lib/request-context.ts'

test('a context with another signal keeps the properties that are getters', () => {
  class Scope implements RequestContext {
    readonly requestId = 'req_1'
    readonly principal = { userId: 'ada', groups: ['users'] }
    readonly receivedAtMs = 7
    get keyId() {
      return 'key_1'
    }
    get trace() {
      return { traceparent: '00-a-b-01', tracestate: null, span: null }
    }
    get signal() {
      return AbortSignal.abort()
    }
  }
  const { signal } = new AbortController()
  expect(withSignal(new Scope(), signal)).toEqual({
    requestId: 'req_1',
    principal: { userId: 'ada', groups: ['users'] },
    keyId: 'key_1',
    trace: { traceparent: '00-a-b-01', tracestate: null, span: null },
    receivedAtMs: 7,
    signal,
  })
})

import { expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { Exchange, type ExchangeCall, outcomeOf } from '#lib/exchange.ts'

function begin() {
  const ended: Exchange[] = []
  const observer = { ended: (exchange: Exchange) => void ended.push(exchange) }
  const exchange = new Exchange(observer, { requestId: 'req_1', method: 'POST', path: '/v1/x' })
  return { ended, exchange }
}

const refused = new AppError('invalid_request', 'No.')
const failed = new AppError('upstream_error', 'It failed.')
const disconnected = new AppError('client_closed', 'The client disconnected.')

const call: ExchangeCall = {
  kind: 'generate',
  model: 'm',
  target: null,
  agentId: null,
  outcome: 'completed',
  error: null,
  retries: 1,
  hedged: false,
  usage: { inputTokens: 10, outputTokens: 2, cachedTokens: 4 },
  queuedMs: 3,
  firstEventMs: 5,
  durationMs: 20,
  endedAtMs: 0,
}

test('is reported once, at its end', () => {
  const { ended, exchange } = begin()
  expect(ended).toEqual([])
  exchange.end()
  const { endedAtMs } = exchange
  exchange.end()
  exchange.fail(failed)
  expect(ended).toEqual([exchange])
  expect(exchange.endedAtMs).toBe(endedAtMs)
})

test('waits for all its work, in either order', () => {
  const { ended, exchange } = begin()
  exchange.workStarted()
  exchange.workStarted()
  exchange.end()
  expect(exchange.workEnded({ pages: 2 })).toBe(true)
  expect(ended).toEqual([])
  expect(exchange.callEnded(call)).toBe(true)
  expect(ended).toEqual([exchange])
  expect(exchange.details).toEqual({ pages: 2 })
})

test('work that ends after the report is not added', () => {
  const { ended, exchange } = begin()
  exchange.end()
  expect([exchange.callEnded(call), exchange.workEnded({ pages: 2 })]).toEqual([false, false])
  expect(exchange).toMatchObject({ callsCount: 0, inputTokens: 0, details: null })
  expect(ended).toHaveLength(1)
})

test('adds up its calls, and names the last generation', () => {
  const { exchange } = begin()
  for (let work = 0; work < 3; work++) exchange.workStarted()
  const embedding: ExchangeCall = { ...call, kind: 'embed', firstEventMs: null, usage: null }
  exchange.callEnded(embedding)
  expect(exchange.call).toBe(embedding)
  exchange.callEnded(call)
  exchange.callEnded(embedding)
  expect(exchange.call).toBe(call)
  expect(exchange).toMatchObject({
    callsCount: 3,
    retries: 3,
    queuedMs: 9,
    inputTokens: 10,
    outputTokens: 2,
    cachedTokens: 4,
  })
})

test('the first output of the first call counts, from the arrival of the request', () => {
  const { exchange } = begin()
  const endedAtMs = exchange.receivedAtMs + 100
  exchange.callEnded({ ...call, endedAtMs })
  expect(exchange.firstEventMs).toBeCloseTo(85)
  exchange.callEnded({ ...call, endedAtMs: endedAtMs + 50 })
  exchange.outputBegan(7)
  expect(exchange.firstEventMs).toBeCloseTo(85)
  expect(exchange.queuedUntilOutputMs).toBe(0)
})

test('each attempt at an upstream has an id of its own', () => {
  const { exchange } = begin()
  const ids = [1, 2, 3].map(() => exchange.nextUpstreamId())
  expect(ids).toEqual(['req_1', 'req_1-2', 'req_1-3'])
})

test('bytes are unknown until some are counted', () => {
  const { exchange } = begin()
  expect([exchange.bytesIn, exchange.bytesOut]).toEqual([null, null])
  exchange.addBytesIn(2)
  exchange.addBytesIn(3)
  exchange.addBytesOut(0)
  expect([exchange.bytesIn, exchange.bytesOut]).toEqual([5, 0])
})

test('a request on the same connection is an exchange of the same caller', () => {
  const { ended, exchange } = begin()
  exchange.userId = 'alice'
  exchange.keyId = 'key_1'
  exchange.route = '/v1/:name'
  exchange.clientAddress = '127.0.0.1'
  const next = exchange.next('req_2')
  expect(next).toMatchObject({
    requestId: 'req_2',
    method: 'POST',
    path: '/v1/x',
    route: '/v1/:name',
    userId: 'alice',
    keyId: 'key_1',
    clientAddress: '127.0.0.1',
    isOpen: true,
    status: 200,
  })
  next.end()
  expect(ended).toEqual([next])
})

type Given = Partial<Pick<Exchange, 'error' | 'call' | 'isOpen' | 'status' | 'wasAbandoned'>>
const failedCall: ExchangeCall = { ...call, outcome: 'failed', error: failed }
const cutCall: ExchangeCall = { ...call, outcome: 'cancelled' }

test.each<[string, string, Given]>([
  ['a status below 400', 'completed', { status: 399, call }],
  ['status 400', 'refused', { status: 400 }],
  ['status 499', 'refused', { status: 499 }],
  ['status 500', 'failed', { status: 500 }],
  ['a refusal', 'refused', { status: 400, error: refused }],
  ['a failure', 'failed', { status: 502, error: failed }],
  ['a refusal after a failed call', 'failed', { status: 400, error: refused, call: failedCall }],
  ['a client that disconnected', 'cancelled', { status: 499, error: disconnected }],
  ['a response that was abandoned', 'cancelled', { status: 200, wasAbandoned: true }],
  // Only a stream has its status before its end.
  ['a stream of a failed call', 'failed', { status: 200, isOpen: true, call: failedCall }],
  ['a whole response beside a failed call', 'completed', { status: 200, call: failedCall }],
  ['a stream that was cut', 'cancelled', { status: 200, isOpen: true, call: cutCall }],
  ['a whole response beside a cancelled call', 'completed', { status: 200, call: cutCall }],
])('with %s it is %s', (_, outcome, given) => {
  const { exchange } = begin()
  Object.assign(exchange, given)
  expect(outcomeOf(exchange)).toBe(outcome)
})

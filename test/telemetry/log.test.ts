import { expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { createLog, redact } from '#telemetry/log.ts'

function logged(format: 'json' | 'text', fields: Record<string, unknown>): string {
  const lines: string[] = []
  const now = () => new Date('2026-01-02T03:04:05.678Z')
  const log = createLog({ level: 'info', format, write: (line) => lines.push(line), now })
  log.debug('too quiet', fields)
  log.warn('it happened', fields)
  return lines.join('\n')
}

test('a line is one JSON object with time, level, message and fields', () => {
  expect(JSON.parse(logged('json', { count: 3, list: ['a'] }))).toEqual({
    time: '2026-01-02T03:04:05.678Z',
    level: 'warn',
    message: 'it happened',
    count: 3,
    list: ['a'],
  })
  expect(logged('text', { count: 3, name: 'x' })).toBe(
    '03:04:05.678 WARN  it happened count=3 name=x',
  )
})

test.each([
  ['a newline', '/v1/x\n03:04:05.678 INFO  forged'],
  ['a carriage return', 'demo\rforged'],
  ['a field', 'demo status=200'],
  ['a quote', 'demo" status="200'],
  ['a line separator', 'demo\u2028forged'],
  ['a C1 control', 'demo\u0085forged'],
  ['a change of direction', 'demo\u202eforged'],
  ['a terminal sequence', 'demo\u001b[2Kforged'],
])('a value with %s cannot forge a line or a field of a text log', (_what, model) => {
  const line = logged('text', { model, status: 404 })
  expect(line).toMatch(/^03:04:05\.678 WARN {2}it happened model="[\x20-\x7e]+" status=404$/)
  const [, quoted = ''] = /model=(".*") status=404$/.exec(line) ?? []
  expect(JSON.parse(quoted)).toBe(model)
})

test.each(['request_id', 'user_id', 'kind', 'path'])(
  'a value of %s cannot forge a field of a JSON line',
  (name) => {
    const value = 'a","status":"200\\'
    expect(JSON.parse(logged('json', { [name]: value, status: 404 }))).toMatchObject({
      [name]: value,
      status: 404,
    })
  },
)

const key = `sk-svc-v1-${'a1B2'.repeat(12)}`
const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'

test.each([
  ['an API key in a sentence', { text: `the key ${key} was used` }],
  ['a token', { text: token }],
  ['a bearer header', { headers: { Authorization: 'Bearer opaque-credential' } }],
  ['a basic header in lower case', { headers: ['basic opaque-credential'] }],
  ['a basic header in a sentence', { text: 'sent "Authorization: Basic opaque-credential"' }],
  ...['token', 'key', 'api_key', 'access_token', 'API_KEY'].flatMap(
    (name): [string, Record<string, unknown>][] => [
      [`?${name}=`, { url: `https://host/v1?${name}=opaque-credential&lang=en` }],
      [`&${name}=`, { url: `https://host/v1?lang=en&${name}=opaque-credential` }],
    ],
  ),
  ...[
    'authorization',
    'Cookie',
    'set-cookie',
    'x-api-key',
    'api_key',
    'apiKey',
    'secret',
    'password',
    'token',
    'pepper',
  ].map((name): [string, Record<string, unknown>] => [
    `a field named ${name}`,
    { request: { [name]: 'opaque-credential' } },
  ]),
  ['a field in a list', { list: [{ password: 'opaque-credential' }] }],
  ['a stack', { error: Object.assign(new Error('x'), { stack: 'at ?key=opaque-credential' }) }],
  ['a query parameter', { url: `wss://host/v1/stt?lang=en&token=opaque-credential` }],
  [
    'a field named for a secret',
    { pepper: 'opaque-credential', nested: { 'x-api-key': 'opaque-credential' } },
  ],
  [
    'an error and its cause',
    {
      error: new AppError('internal_error', 'x', {
        cause: new Error(`Bearer opaque-credential ${key}`),
      }),
    },
  ],
])('%s is redacted', (_name, fields) => {
  for (const format of ['json', 'text'] as const) {
    const line = logged(format, fields)
    expect(line).toContain('[redacted]')
    for (const secret of [key, token, 'opaque-credential']) expect(line).not.toContain(secret)
  }
})

test.each([
  'tokens=5 the token bucket is full',
  'token=5',
  'https://host/v1?tokens=5&monkey=1',
  'the basics of bearers',
])('%s is kept', (text) => {
  expect(redact(text)).toBe(text)
})

test('what surrounds a credential is kept', () => {
  expect(redact('wss://host/v1?lang=en&api_key=opaque&model=small')).toBe(
    'wss://host/v1?lang=en&api_key=[redacted]&model=small',
  )
  expect(redact('sent "Basic b3BhcXVl", then Bearer abc.')).toBe(
    'sent "Basic [redacted]", then Bearer [redacted]',
  )
})

test('a log writes its level and those above, and fields at most six levels deep', () => {
  expect(logged('text', {}).split('\n')).toHaveLength(1)
  const deep = { a: { b: { c: { d: { e: { f: { g: { h: 'too deep' } } } } } } } }
  expect(logged('json', deep)).toContain('"g":"[deep]"')
})

test('a circular field is truncated', () => {
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  expect(logged('json', loop)).toContain('[deep]')
})

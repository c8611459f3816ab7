import { describe, expect, test } from 'bun:test'
import { readCookie, requireSameOrigin } from '#auth/session-cookie.ts'
import { AppError } from '#lib/errors.ts'

const origin = 'https://gateway.example'

test.each([
  ['a=1; sluice_session=secret', 'secret'],
  [' sluice_session = secret ;a=1', 'secret'],
  ['sluice_session=with=sign', 'with=sign'],
  ['sluice_session_2=other; not_sluice_session=other', null],
  ['sluice_session', null],
  ['', null],
])('the session cookie of %j is %j', (cookie, value) => {
  expect(readCookie(new Request(origin, { headers: { cookie } }), 'sluice_session')).toBe(value)
})

function outcomeOf(method: string, headers: Record<string, string>, isUpgrade = false) {
  try {
    requireSameOrigin(new Request(origin, { method, headers }), { origin, isUpgrade })
    return 'accepted'
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return `${error.kind} ${error.wireCode}`
  }
}

describe('a request with a session cookie', () => {
  const refused = 'permission_denied csrf_refused'
  const csrf = { 'x-sluice-csrf': '1' }

  test.each(['GET', 'HEAD', 'OPTIONS'])('%s needs no header', (method) => {
    expect(outcomeOf(method, {})).toBe('accepted')
    expect(outcomeOf(method, { 'sec-fetch-site': 'cross-site' })).toBe('accepted')
    expect(outcomeOf(method, { origin: 'https://other.example' })).toBe(refused)
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s needs the header of the console', (method) => {
    expect(outcomeOf(method, {})).toBe(refused)
    expect(outcomeOf(method, csrf)).toBe('accepted')
    expect(outcomeOf(method, { ...csrf, origin })).toBe('accepted')
    expect(outcomeOf(method, { ...csrf, 'sec-fetch-site': 'same-origin' })).toBe('accepted')
    expect(outcomeOf(method, { ...csrf, 'sec-fetch-site': 'same-site' })).toBe(refused)
    expect(outcomeOf(method, { ...csrf, origin: 'https://other.example' })).toBe(refused)
  })

  test('an upgrade needs an origin, as a WebSocket has no other header', () => {
    expect(outcomeOf('GET', csrf, true)).toBe(refused)
    expect(outcomeOf('GET', { origin }, true)).toBe('accepted')
    expect(outcomeOf('GET', { origin: 'https://other.example' }, true)).toBe(refused)
  })
})

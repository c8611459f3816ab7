import { expect, test } from 'bun:test'
import { toAppError } from '#lib/errors.ts'
import { isDatabaseOutage } from '#lib/sql-state.ts'

function errorWith(fields: object, name = 'Error'): Error {
  return Object.assign(new Error('failed'), fields, { name })
}

const ofServer = (code: string) => errorWith({ code }, 'PostgresError')
const ofQuery = (cause: Error) => errorWith({ query: 'select 1', cause })

test.each([
  errorWith({ code: 'CONNECTION_CLOSED' }),
  errorWith({ code: 'CONNECT_TIMEOUT' }),
  ofQuery(errorWith({ code: 'CONNECTION_ENDED' })),
  ofQuery(errorWith({ code: 'ECONNREFUSED' })),
  ofQuery(errorWith({ code: 'ECONNRESET' })),
  ofServer('57P01'),
  ofServer('08006'),
  ofQuery(ofServer('53300')),
])('a lost connection is an outage, 503 for callers (%#)', (error) => {
  expect(isDatabaseOutage(error)).toBe(true)
  expect(toAppError(error)).toMatchObject({ kind: 'service_unavailable', retryAfterS: 1 })
})

test.each([
  new Error('anything'),
  errorWith({ code: 'ENOENT' }),
  errorWith({ code: 'ECONNREFUSED' }),
  ofServer('23505'),
  ofQuery(ofServer('22P02')),
  ofQuery(new Error('not a code')),
  'a text',
])('a defect is none, 500 for callers (%#)', (error) => {
  expect(isDatabaseOutage(error)).toBe(false)
  expect(toAppError(error).kind).toBe('internal_error')
})

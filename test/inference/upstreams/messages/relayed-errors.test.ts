import { describe, expect, test } from 'bun:test'
import {
  frameOf,
  relayResponseError,
  relayStreamError,
} from '#inference/upstreams/messages/relay.ts'

const errorOf = (type: unknown) => ({ type: 'error', error: { type, message: 'No.' } })
const contentType = 'application/json'

describe('an error response', () => {
  const body = JSON.stringify(errorOf('a_type_of_tomorrow'))

  test.each([400, 402, 404, 429, 500, 529])('with status %d goes on as it is', (status) => {
    expect(relayResponseError({ status, body })).toEqual({ status, body, contentType })
  })

  test.each([401, 403])('with status %d does not, as clients would blame their key', (status) => {
    expect(relayResponseError({ status, body })).toBeNull()
  })

  test.each([
    '<html>',
    '"text"',
    '{"error":{"type":"api_error"}}',
    '{"type":"message","error":{"type":"api_error"}}',
    '{"type":"error","error":"api_error"}',
    '{"type":"error","error":{"type":500}}',
  ])('%s of another protocol does not', (other) => {
    expect(relayResponseError({ status: 500, body: other })).toBeNull()
  })
})

describe('an error in a stream', () => {
  test.each([
    ['invalid_request_error', 400],
    ['billing_error', 402],
    ['not_found_error', 404],
    ['conflict_error', 409],
    ['request_too_large', 413],
    ['rate_limit_error', 429],
    ['api_error', 500],
    ['timeout_error', 504],
    ['overloaded_error', 529],
  ])('%s has the status %d', (type, status) => {
    const payload = errorOf(type)
    expect(relayStreamError(payload)).toEqual({
      status,
      body: JSON.stringify(payload),
      contentType,
    })
  })

  test.each(['authentication_error', 'permission_error', '', null])(
    'of the type %p does not go on',
    (type) => {
      expect(relayStreamError(errorOf(type))).toBeNull()
    },
  )
})

describe('a frame', () => {
  const payload = { type: 'ping' }

  test('keeps the text that arrived, if it is one line', () => {
    expect(frameOf(payload, '{"type": "ping"}')).toEqual({ payload, data: '{"type": "ping"}' })
    expect(frameOf(payload, '{"type":\n"ping"}')).toEqual({ payload, data: '' })
    expect(frameOf(payload)).toEqual({ payload, data: '' })
  })

  test.each([
    [{ delta: { type: 'signature_delta', signature: 'sig' } }, 'sig'],
    [{ content_block: { type: 'thinking', signature: 'sig' } }, 'sig'],
    [{ content_block: { type: 'redacted_thinking', data: 'data' } }, 'redacted:data'],
    [{ content_block: { type: 'redacted_thinking', data: '' } }, undefined],
    [{ content_block: { type: 'thinking', data: 'data' } }, undefined],
    [{ content_block: { type: 'text', signature: 'sig', data: 'data' } }, undefined],
  ])('of %j has the seal %p', (sealing, sealed) => {
    const seal = sealed === undefined ? {} : { sealed }
    expect(frameOf(sealing)).toStrictEqual({ payload: sealing, data: '', ...seal })
  })
})

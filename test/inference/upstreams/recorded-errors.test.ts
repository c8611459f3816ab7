import { describe, expect, test } from 'bun:test'
import type { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { decodeBytes, decodePayloads } from '#test/support/chat-decoding.ts'
import {
  type RecordedProtocol,
  recordedBody,
  recordedErrorNames,
} from '#test/support/recordings.ts'
import * as messages from './messages/decoding.ts'
import * as responses from './responses/decoding.ts'

/** What servers send instead of a response, or in the middle of one. */

type Read = { error: AppError | null }

/** It ends without a word. */
const silent = 'litellm-openai-messages-error-notation.sse'

const decoders: Record<
  RecordedProtocol,
  { reads(pieces: Uint8Array[]): Read; whole(body: JsonObject, text: string): Read }
> = {
  'chat-completions': {
    reads: (pieces) => decodeBytes(pieces),
    whole: (_, text) => decodePayloads([text]),
  },
  responses: { reads: responses.decodeReads, whole: (body) => responses.decodeWhole(body) },
  messages: { reads: messages.decodeReads, whole: (body) => messages.decodeWhole(body) },
}

/** Said in every one of these recordings. */
const reason =
  /does not match the expected|exceeds the available context|to be an array|must be|Unsupported/

describe.each(['chat-completions', 'responses', 'messages'] as const)('%s', (protocol) => {
  const { reads, whole } = decoders[protocol]
  const names = recordedErrorNames(protocol).filter((name) => name !== silent)

  test.each(names.filter((name) => name.endsWith('.json')))('%s fails with its reason', (name) => {
    const text = recordedBody(protocol, name)
    const body = parseJson(text)
    const { error } = whole(isRecord(body) ? body : {}, text)
    expect(error?.kind).not.toBe('internal_error')
    expect(error?.message).toMatch(reason)
  })

  test.each(names.filter((name) => name.endsWith('.sse')))(
    '%s fails with its reason, wherever reads divide it',
    (name) => {
      const bytes = Buffer.from(recordedBody(protocol, name))
      const { error } = reads([bytes])
      expect(error?.kind).not.toBe('internal_error')
      expect(error?.message).toMatch(reason)
      for (const cut of bytes.keys()) {
        const again = reads([bytes.subarray(0, cut), bytes.subarray(cut)])
        expect(again.error).toMatchObject({ kind: error?.kind, message: error?.message })
      }
    },
  )
})

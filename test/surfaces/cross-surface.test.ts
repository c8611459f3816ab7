import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { fromToolUseId } from '#surfaces/messages/tool-id.ts'
import { foldMessage, renderMessage } from '#test/support/message-rendering.ts'
import { recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import { type DecodedProtocol, decodeReads, renderDecoded } from '#test/support/rendering.ts'
import { checkStream } from '#test/support/response-frames.ts'

/** The same upstream bytes have the same result on both surfaces, each in its own format. */

type Answer = {
  text: string
  reasoning: string
  calls: { id: unknown; name: unknown; input: unknown }[]
  sources: unknown[]
  usage: { input: number; cached: unknown; output: unknown; thinking: unknown } | null
  ending: string
}

const fixtures = join(import.meta.dir, '../fixtures/chat-completions')

/** A complete response, or the failure that ends it. */
function expectSameResult(protocol: DecodedProtocol, bytes: Uint8Array): void {
  const decoded = decodeReads(protocol, [bytes])
  const { batches, failure } = decoded
  const asResponse = renderDecoded(decoded)
  if (failure !== null) {
    expect(asResponse).toEndWith(`thrown: ${failure.kind}`)
    return
  }
  const response = answerOfResponse(checkStream(asResponse).response)
  const { message } = renderMessage(batches)
  expect(answerOfMessage(message ?? {}, response.usage !== null)).toEqual(response)
  const folded = foldMessage(batches)
  expect(answerOfMessage({ ...folded }, response.usage !== null)).toEqual(response)
}

const endings: Readonly<Record<string, string>> = {
  end_turn: 'completed',
  tool_use: 'completed',
  max_tokens: 'max_output_tokens',
  refusal: 'content_filter',
}

function answerOfMessage(message: JsonObject, isCounted: boolean): Answer {
  const content = listOf(message['content'])
  const of = (type: string) => content.filter((block) => block['type'] === type)
  const usage = asRecord(message['usage'])
  const refused = asRecord(message['stop_details'])['explanation'] === null
  return {
    text: of('text')
      .map(({ text }) => text)
      .join(''),
    reasoning: of('thinking')
      .map(({ thinking }) => thinking)
      .join(''),
    calls: of('tool_use').map(({ id, name, input }) => ({
      id: fromToolUseId(String(id)),
      name,
      input,
    })),
    sources: of('text').flatMap((block) => listOf(block['citations']).map(({ url }) => url)),
    usage: isCounted
      ? {
          input:
            Number(usage['input_tokens']) +
            Number(usage['cache_read_input_tokens']) +
            Number(usage['cache_creation_input_tokens']),
          cached: usage['cache_read_input_tokens'],
          output: usage['output_tokens'],
          thinking: asRecord(usage['output_tokens_details'])['thinking_tokens'],
        }
      : null,
    // In the other format a refusal completes the response.
    ending: refused ? 'completed' : (endings[String(message['stop_reason'])] ?? 'unknown'),
  }
}

function answerOfResponse(response: JsonObject): Answer {
  const output = listOf(response['output'])
  const of = (type: string) => output.filter((item) => item['type'] === type)
  const parts = of('message').flatMap(({ content }) => listOf(content))
  const usage = response['usage']
  const reason = asRecord(response['incomplete_details'])['reason']
  const annotations = parts.flatMap((part) => listOf(part['annotations']))
  return {
    text: parts.map(({ text, refusal }) => text ?? refusal).join(''),
    reasoning: of('reasoning')
      .map(({ summary }) =>
        listOf(summary)
          .map(({ text }) => text)
          .filter((text) => text !== '')
          .join('\n\n'),
      )
      .join(''),
    calls: output.flatMap((item) => callOf(item)),
    sources: annotations.flatMap(({ type, url }) => (type === 'url_citation' ? [url] : [])),
    usage: isRecord(usage)
      ? {
          input: Number(usage['input_tokens']),
          cached: asRecord(usage['input_tokens_details'])['cached_tokens'],
          output: usage['output_tokens'],
          thinking: asRecord(usage['output_tokens_details'])['reasoning_tokens'],
        }
      : null,
    ending: String(reason ?? response['status']),
  }
}

function callOf({ type, call_id: id, name, arguments: args, input }: JsonObject): Answer['calls'] {
  if (type === 'custom_tool_call') return [{ id, name, input: { input } }]
  if (type !== 'function_call') return []
  return [{ id, name, input: asRecord(parseJson(String(args))) }]
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(asRecord) : []
}

/** llama.cpp completes a response whose call was cut off at the limit. */
const cutCall = 'llama.cpp-responses-tool-call-limit.sse'

describe('recorded streams', () => {
  for (const protocol of ['chat-completions', 'responses', 'messages'] as const) {
    test.each(recordedStreamNames(protocol).filter((name) => name !== cutCall))(
      `${protocol}/%s`,
      (name) => {
        expectSameResult(protocol, new TextEncoder().encode(recordedStream(protocol, name)))
      },
    )
  }
})

test.each(readdirSync(fixtures))('fixture %s', (name) => {
  expectSameResult('chat-completions', readFileSync(join(fixtures, name)))
})

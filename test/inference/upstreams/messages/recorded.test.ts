import { describe, expect, test } from 'bun:test'
import { textOfFrame } from '#inference/events.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { blocksOf, encode, mergeDeltas } from '#test/inference/upstreams/responses/decoding.ts'
import { checkMessageStream, isConformingStream } from '#test/support/message-frames.ts'
import {
  isOwnRecording,
  recordedBody,
  recordedBodyNames,
  recordedPayloads,
  recordedStream,
  recordedStreamNames,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'
import { type Decoded, decodeReads, decodeWhole, sealedBy, wireOf } from './decoding.ts'

const streamNames = recordedStreamNames('messages')
const bodyNames = recordedBodyNames('messages')
/** A server that ended a call early and began its response again. */
const spliced = 'spliced-message-start.chunks.txt'
const twiceBegun = 'duplicate-message-start.chunks.txt'
const readable = (name: string) => name !== spliced
const isRelayable = (name: string) =>
  readable(name) && (!isOwnRecording(name) || isConformingStream(recordedStream('messages', name)))

/** The content of a message, read without the decoder. */
function expectedContent(message: JsonObject): unknown {
  const content = records(message['content'])
  const of = (type: string) => content.filter((block) => block['type'] === type)
  const usage = asRecord(message['usage'])
  const count = (name: string) => Number(usage[name] ?? 0)
  const inputTokens =
    count('input_tokens') + count('cache_read_input_tokens') + count('cache_creation_input_tokens')
  return {
    text: of('text')
      .map((block) => block['text'])
      .join(''),
    cited: of('text').flatMap((block) => records(block['citations']).map(({ url }) => url)),
    reasoning: of('thinking').map((block) => [block['thinking'], block['signature'] || undefined]),
    calls: of('tool_use').map(({ id, name, input }) => [id, name, input]),
    counts: [inputTokens, count('output_tokens')],
  }
}

/** The same for the decoded events. */
function said({ events }: Decoded): unknown {
  const blocks = blocksOf({ events })
  const last = events.at(-1)
  const usage = last?.type === 'finish' ? last.usage : null
  return {
    text: blocks.map((block) => ('text' in block ? block.text : '')).join(''),
    cited: blocks
      .flatMap((block) => ('text' in block ? (block.citations ?? []) : []))
      .map((citation) => (citation.kind === 'url' ? citation.url : null)),
    reasoning: blocks.flatMap((block) =>
      'reasoning' in block ? [[block.reasoning.join(''), block.sealed]] : [],
    ),
    calls: blocks.flatMap((block) =>
      'call' in block ? [[block.id, block.call, parseJson(block.input) ?? {}]] : [],
    ),
    counts: [usage?.inputTokens ?? 0, usage?.outputTokens ?? 0],
  }
}

/** The payloads of the first response in a recording, without pings; some contain several. */
function firstAnswer(name: string): JsonObject[] {
  const payloads = recordedPayloads('messages', name).map((text) => asRecord(parseJson(text)))
  const end = payloads.findIndex(({ type }) => type === 'message_stop')
  return payloads.slice(0, end + 1).filter(({ type }) => type !== 'ping')
}

/** The message that the payloads form. */
function addUp(payloads: readonly JsonObject[]): JsonObject {
  const content: JsonObject[] = []
  const usage: JsonObject = {}
  const inputs: string[] = []
  for (const payload of payloads) {
    const delta = asRecord(payload['delta'])
    const at = Number(payload['index'] ?? 0)
    const block = content[at] ?? {}
    const add = (field: string, more: unknown) => {
      block[field] = `${block[field] ?? ''}${more}`
    }
    Object.assign(usage, asRecord(payload['message'])['usage'], payload['usage'])
    if (payload['type'] === 'content_block_start') {
      content[at] = { ...asRecord(payload['content_block']) }
    }
    if (delta['type'] === 'text_delta') add('text', delta['text'])
    if (delta['type'] === 'thinking_delta') add('thinking', delta['thinking'])
    if (delta['type'] === 'signature_delta') block['signature'] = delta['signature']
    if (delta['type'] === 'input_json_delta') {
      inputs[at] = `${inputs[at] ?? ''}${delta['partial_json']}`
    }
    if (delta['type'] === 'citations_delta') {
      block['citations'] = [...records(block['citations']), delta['citation']]
    }
    const input = inputs[at] ?? ''
    if (payload['type'] === 'content_block_stop' && input !== '')
      block['input'] = parseJson(input) ?? {}
  }
  return { content, usage }
}

describe('recorded streams', () => {
  test.each(streamNames.filter(readable))('%s has its recorded content', (name) => {
    const decoded = decodeReads([encode(recordedStream('messages', name))])
    expect(decoded.error).toBeNull()
    expect(said(decoded)).toEqual(expectedContent(addUp(firstAnswer(name))))
  })

  test.each(streamNames.filter(isRelayable))('%s is relayed as it came', (name) => {
    const { frames } = decodeReads([encode(recordedStream('messages', name))])
    const came = firstAnswer(name)
    if (name === twiceBegun) came.shift()
    expect(frames.map(({ payload }) => payload)).toEqual(came)
    expect(frames.map((frame) => parseJson(textOfFrame(frame)))).toEqual(came)
    expect(frames.filter((frame) => textOfFrame(frame).includes('\n'))).toEqual([])
    checkMessageStream(wireOf(frames))
  })

  test.skipIf(!sharedRecordingsExist)('a signature is reported as sealed data of its frame', () => {
    const name = 'anthropic-clear-thinking.1.chunks.txt'
    const { events, frames } = decodeReads([encode(recordedStream('messages', name))])
    const signed = frames.filter(({ sealed }) => sealed !== undefined)
    expect(signed.map(({ payload }) => asRecord(payload['delta'])['type'])).toEqual([
      'signature_delta',
    ])
    const end = events.find(({ type }) => type === 'reasoning-end')
    expect(end).toMatchObject({ sealed: signed[0]?.sealed, sealedBy })
  })

  test.skipIf(!sharedRecordingsExist)('citations cover their piece of the text', () => {
    const name = 'anthropic-web-search-tool.1.chunks.txt'
    const decoded = decodeReads([encode(recordedStream('messages', name))])
    const text = blocksOf(decoded).find((block) => 'text' in block)
    const citations = text !== undefined && 'text' in text ? (text.citations ?? []) : []
    const cited = records(addUp(firstAnswer(name))['content']).flatMap((block) =>
      records(block['citations']).map(() => String(block['text'])),
    )
    expect(
      citations.map((citation) =>
        citation.kind === 'url' && text !== undefined && 'text' in text
          ? text.text.slice(citation.startIndex, citation.endIndex)
          : '',
      ),
    ).toEqual(cited)
    expect(cited.length).toBeGreaterThan(5)
  })

  test.skipIf(!sharedRecordingsExist)('a second message in the same response is an error', () => {
    const { error, events } = decodeReads([encode(recordedStream('messages', spliced))])
    expect(error?.kind).toBe('upstream_truncated')
    expect(blocksOf({ events })).toMatchObject([
      { reasoning: ['I will call the tool.'] },
      { call: 'test-tool', input: '{"value":"Spark' },
    ])
  })

  test.skipIf(!sharedRecordingsExist)(
    'a message that is complete in its start is split into blocks',
    () => {
      const name = 'anthropic-programmatic-tool-calling.1.chunks.txt'
      const second = recordedPayloads('messages', name).slice(167)
      const decoded = decodeReads([encode(second.map((text) => `data: ${text}\n\n`).join(''))])
      expect(decoded.error).toBeNull()
      expect(blocksOf(decoded)).toEqual([
        { call: 'rollDie', id: 'toolu_015dGLMbwBKv1ZRQr6KdJzeH', input: '{"player":"player2"}' },
      ])
      const { message } = checkMessageStream(wireOf(decoded.frames))
      const whole = asRecord(asRecord(parseJson(second[0] ?? ''))['message'])
      expect(message).toMatchObject({
        content: whole['content'],
        stop_reason: 'tool_use',
        container: whole['container'],
      })
    },
  )
})

describe('recorded whole answers', () => {
  test.each(bodyNames)('%s is equal in events and in frames', (name) => {
    const body = asRecord(parseJson(recordedBody('messages', name)))
    const decoded = decodeWhole(body)
    expect(decoded.error).toBeNull()
    expect(said(decoded)).toEqual(expectedContent(body))
    const content = records(body['content'])
      .filter(({ text }) => text !== '')
      .map((block) => (block['signature'] === null ? { ...block, signature: '' } : block))
    const { message } = checkMessageStream(wireOf(decoded.frames))
    expect(message?.['content']).toEqual(content)
    // A response composed of several ends with `stop`.
    const isCall = content.some(({ type }) => type === 'tool_use')
    const isCut = body['stop_reason'] === 'max_tokens'
    // llama.cpp names the stop sequence, and not that it was one.
    const reason = body['stop_sequence'] ? 'stop_sequence' : body['stop_reason']
    expect(message?.['stop_reason']).toEqual(isCall && !isCut ? 'tool_use' : reason)
    expect(message?.['stop_sequence']).toEqual(body['stop_sequence'] ?? null)
    expect(message?.['usage']).toEqual(body['usage'])
  })
})

const everyOffsetBytesMax = 4_096
const seededOffsets = 500

describe('however the bytes are divided', () => {
  test.each(streamNames)('%s becomes the same', (name) => {
    const bytes = encode(recordedStream('messages', name))
    const whole = outcome(decodeReads([bytes]))
    let differing = 0
    for (const cut of cutsOf(bytes.length)) {
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)]
      if (outcome(decodeReads(parts)) !== whole) differing++
    }
    expect(differing).toBe(0)
  })

  test('also byte by byte', () => {
    for (const name of streamNames) {
      const bytes = encode(recordedStream('messages', name))
      const reads = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
      expect(outcome(decodeReads(reads))).toBe(outcome(decodeReads([bytes])))
    }
  })
})

function outcome({ events, frames, error }: Decoded): string {
  return JSON.stringify([mergeDeltas(events), frames, error?.kind, error?.message])
}

function cutsOf(length: number): number[] {
  if (length <= everyOffsetBytesMax) return Array.from({ length }, (_, cut) => cut)
  const step = length / seededOffsets
  return Array.from({ length: seededOffsets }, (_, at) => Math.floor(at * step))
}

function records(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

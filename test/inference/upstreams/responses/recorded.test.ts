import { describe, expect, test } from 'bun:test'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  recordedBody,
  recordedBodyNames,
  recordedPayloads,
  recordedStream,
  recordedStreamNames,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'
import {
  blocksOf,
  type Decoded,
  decode,
  decodeReads,
  decodeWhole,
  encode,
  finishOf,
  mergeDeltas,
} from './decoding.ts'

const streamNames = recordedStreamNames('responses')
const bodyNames = recordedBodyNames('responses')
/** Four answers in one file, one after another. */
const severalAnswers = 'openai-reasoning-encrypted-content.1.chunks.txt'
/** Its first and its last payload lack the closing brace. */
const brokenJson = 'parallel-tool-call-wrapper.1.chunks.txt'
/** An error event and a failed response. */
const failures = ['openai-error.1.chunks.txt', 'openai-error.1.json']
const refusedRequest = 'reasoning-model-temperature-error.json'

const readable = (name: string) =>
  ![severalAnswers, brokenJson, refusedRequest, ...failures].includes(name)

/** The content of a finished response, read without the decoder. */
function expectedContent(response: JsonObject): unknown {
  const output = records(response['output'])
  const parts = output
    .filter((item) => item['type'] === 'message')
    .flatMap((item) => records(item['content']))
    .filter((part) => part['text'] !== '')
  const { input_tokens, output_tokens, total_tokens, ...details } = record(response['usage'])
  return {
    texts: parts.map((part) => part['text']),
    citations: parts.flatMap((part) => records(part['annotations'])).map(citationOf),
    reasoning: output.flatMap((item) =>
      [...records(item['summary']), ...reasoningContent(item)].map((part) => part['text']),
    ),
    hosted: output
      .filter((item) => !/^(message|reasoning|function_call|custom_tool_call)$/.test(typeOf(item)))
      // Sealing is not deterministic.
      .map(({ id: _, fingerprint: __, ...item }) => item),
    calls: output
      .filter((item) => /^(function|custom_tool)_call$/.test(typeOf(item)))
      .map((item) => ({
        call: item['name'],
        id: item['call_id'],
        input: item['arguments'] ?? item['input'],
        ...((item['namespace'] ?? null) === null ? {} : { namespace: item['namespace'] }),
        ...(item['type'] === 'custom_tool_call' ? { custom: true } : {}),
      })),
    usage: {
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      totalTokens: total_tokens,
      cachedTokens: record(details['input_tokens_details'])['cached_tokens'] ?? 0,
      cacheWriteTokens: record(details['input_tokens_details'])['cache_write_tokens'] ?? 0,
      reasoningTokens: record(details['output_tokens_details'])['reasoning_tokens'] ?? 0,
    },
  }
}

/** The same for the decoded events. */
function said(decoded: Decoded): unknown {
  const blocks = blocksOf(decoded)
  const finish = record(finishOf(decoded))
  const texts = blocks.filter((block) => 'text' in block)
  return {
    texts: texts.map(({ text }) => text),
    citations: texts.flatMap(({ citations }) => citations ?? []),
    reasoning: blocks.flatMap((block) => ('reasoning' in block ? block.reasoning : [])),
    hosted: blocks.flatMap((block) => {
      if (!('hosted' in block)) return []
      const { fingerprint: _, ...item } = record(block.end)
      return [item]
    }),
    calls: blocks.filter((block) => 'call' in block),
    usage: finish['usage'],
  }
}

describe('recorded streams of other servers', () => {
  test.each(streamNames.filter(readable))('%s says what its last event says', (name) => {
    const decoded = decodeReads([encode(recordedStream('responses', name))])
    expect(decoded.error).toBeNull()
    expect(said(decoded)).toEqual(
      expectedContent(lastResponse(recordedPayloads('responses', name))),
    )
  })

  test.skipIf(!sharedRecordingsExist)('a body with several responses ends with the first', () => {
    const answers = splitAnswers(recordedPayloads('responses', severalAnswers))
    expect(answers).toHaveLength(4)
    const whole = decodeReads([encode(recordedStream('responses', severalAnswers))])
    expect(whole.events).toEqual(decode(answers[0] ?? []).events)
    for (const answer of answers) {
      expect(said(decode(answer))).toEqual(expectedContent(lastResponse(answer)))
    }
  })

  test.skipIf(!sharedRecordingsExist)(
    'sealed reasoning is emitted with the end of its block',
    () => {
      const [payloads = []] = splitAnswers(recordedPayloads('responses', severalAnswers))
      const sealed = payloads
        .map((text) => record(parseJson(text)))
        .filter((payload) => payload['type'] === 'response.output_item.done')
        .map((payload) => record(payload['item'])['encrypted_content'])
        .filter((payload) => typeof payload === 'string')
      const blocks = blocksOf(decode(payloads))
      expect(blocks.flatMap((block) => ('sealed' in block ? [block.sealed] : []))).toEqual(sealed)
      expect(sealed).toHaveLength(1)
    },
  )

  test.skipIf(!sharedRecordingsExist)(
    'a final event that is not JSON truncates the stream after its content',
    () => {
      const decoded = decodeReads([encode(recordedStream('responses', brokenJson))])
      expect(decoded.error?.kind).toBe('upstream_truncated')
      const repaired = recordedPayloads('responses', brokenJson).map((text) =>
        parseJson(text) === undefined ? `${text}}` : text,
      )
      const body = recordedBody('responses', brokenJson.replace('chunks.txt', 'json'))
      expect(said(decode(repaired))).toEqual(expectedContent(record(parseJson(body))))
      expect(blocksOf(decoded)).toEqual(blocksOf(decode(repaired)))
    },
  )

  test.skipIf(!sharedRecordingsExist)('an error event throws with the code of the upstream', () => {
    const decoded = decodeReads([encode(recordedStream('responses', 'openai-error.1.chunks.txt'))])
    expect(decoded.error).toMatchObject({
      kind: 'insufficient_quota',
      wireCode: 'insufficient_quota',
      message: expect.stringContaining('You exceeded your current quota'),
    })
    expect(decoded.events).toEqual([{ type: 'generation-start' }])
  })
})

describe('recorded whole answers', () => {
  test.each(bodyNames.filter(readable))('%s says the same as events', (name) => {
    const response = record(parseJson(recordedBody('responses', name)))
    const decoded = decodeWhole(response)
    expect(decoded.error).toBeNull()
    expect(said(decoded)).toEqual(expectedContent(response))
  })

  test.skipIf(!sharedRecordingsExist)('error bodies throw', () => {
    const quota = decodeWhole(parseJson(recordedBody('responses', 'openai-error.1.json')))
    expect(quota.error).toMatchObject({ kind: 'insufficient_quota' })
    const refused = decodeWhole(parseJson(recordedBody('responses', refusedRequest)))
    expect(refused.error).toMatchObject({ kind: 'invalid_request', param: 'temperature' })
  })
})

const everyOffsetBytesMax = 4_096
const seededOffsets = 1_000

describe('however the bytes are divided', () => {
  test.each(streamNames)('%s becomes the same events', (name) => {
    const bytes = encode(recordedStream('responses', name))
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
      const bytes = encode(recordedStream('responses', name))
      const reads = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
      expect(outcome(decodeReads(reads))).toBe(outcome(decodeReads([bytes])))
    }
  })
})

function outcome({ events, error }: Decoded): string {
  return JSON.stringify([mergeDeltas(events), error?.kind, error?.message])
}

function cutsOf(length: number): number[] {
  if (length <= everyOffsetBytesMax) return Array.from({ length }, (_, cut) => cut)
  // Numerical Recipes' linear congruential generator: the same offsets in each run.
  let seed = length
  return Array.from({ length: seededOffsets }, () => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return seed % length
  })
}

function splitAnswers(payloads: readonly string[]): string[][] {
  const answers: string[][] = []
  for (const payload of payloads) {
    if (record(parseJson(payload))['type'] === 'response.created') answers.push([])
    answers.at(-1)?.push(payload)
  }
  return answers
}

function lastResponse(payloads: readonly string[]): JsonObject {
  return record(record(parseJson(payloads.at(-1) ?? ''))['response'])
}

function citationOf(annotation: JsonObject): unknown {
  return annotation['type'] === 'url_citation'
    ? {
        kind: 'url',
        url: annotation['url'],
        title: annotation['title'],
        startIndex: annotation['start_index'],
        endIndex: annotation['end_index'],
      }
    : {
        kind: 'file',
        fileId: annotation['file_id'],
        filename: annotation['filename'],
        index: annotation['index'] ?? annotation['start_index'],
        ...(annotation['container_id'] === undefined
          ? {}
          : { container: { id: annotation['container_id'], endIndex: annotation['end_index'] } }),
      }
}

function typeOf(item: JsonObject): string {
  return String(item['type'])
}

function reasoningContent(item: JsonObject): JsonObject[] {
  return item['type'] === 'reasoning' ? records(item['content']) : []
}

function records(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function record(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}

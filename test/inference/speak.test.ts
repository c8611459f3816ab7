import { describe, expect, test } from 'bun:test'
import { OpenCall } from '#inference/open-call.ts'
import { type OpenedSpeech, postSpeech, readSpeech, type SpeakInput } from '#inference/speak.ts'
import { type Chunk, chunkOf, type UpstreamHttpRequest } from '#inference/transport.ts'
import { toAppError } from '#lib/errors.ts'
import { type Failure, PullIterator } from '#lib/pull-iterator.ts'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { makeContext, makeRequestContext } from '#test/support/generation.ts'

class Chunks extends PullIterator<Chunk> {
  isReturned = false
  readonly #pieces: Uint8Array[]
  readonly #end: Failure

  constructor(pieces: readonly Uint8Array[], end: Failure) {
    super()
    this.#pieces = [...pieces]
    this.#end = end
  }

  async return() {
    this.isReturned = true
    return { done: true, value: undefined } as const
  }

  protected onPull() {
    const piece = this.#pieces.shift()
    if (piece === undefined) this.emitEnd(this.#end)
    else queueMicrotask(() => this.emit(chunkOf(piece)))
  }
}

const input: SpeakInput = { text: 'Hello', voice: 'alloy', format: 'mp3' }
const bytes = Uint8Array.of(1, 2, 3)

/** Asks an upstream that answers so. */
async function ask(
  given: {
    type?: string
    status?: number
    pieces?: Uint8Array[]
    input?: Partial<SpeakInput>
  } = {},
) {
  const { type = null, status = 200, pieces = [bytes] } = given
  const chunks = new Chunks(pieces, null)
  const sent: UpstreamHttpRequest[] = []
  const transport = {
    async send(request: UpstreamHttpRequest) {
      sent.push(request)
      const header = (name: string) => (name === 'content-type' ? type : null)
      return { status, header, chunks, whole: null }
    },
  }
  const context = makeContext({ transport, baseUrl: 'http://speaker.example/v1' })
  const asked = postSpeech({ ...input, ...given.input }, context)
  const outcome = await asked.then(
    (opened) => ({ opened, error: null }),
    (error: unknown) => ({ opened: null, error: toAppError(error) }),
  )
  return { ...outcome, chunks, sent: sent[0] }
}

test('a request names the model, and only the settings of its client', async () => {
  const { sent } = await ask()
  expect(sent).toMatchObject({
    upstream: 'an-upstream',
    url: 'http://speaker.example/v1/audio/speech',
    method: 'POST',
    headers: { accept: '*/*', authorization: 'Bearer a-secret' },
  })
  const least = {
    model: 'upstream-model',
    input: 'Hello',
    voice: 'alloy',
    response_format: 'mp3',
  }
  expect(JSON.parse(String(sent?.body))).toEqual(least)
  const more = { speed: 1.5, instructions: 'Softly.' }
  expect(JSON.parse(String((await ask({ input: more })).sent?.body))).toEqual({ ...least, ...more })
})

test.each([
  ['mp3', 'audio/mpeg'],
  ['opus', 'audio/ogg'],
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['wav', 'audio/wav'],
  ['pcm', 'audio/pcm'],
] as const)('%s without a content type is %s', async (format, contentType) => {
  expect((await ask({ input: { format } })).opened?.contentType).toBe(contentType)
})

test.each(['audio/x-vendor', 'AUDIO/MPEG', 'application/octet-stream', 'application/ogg'])(
  'the content type %s is passed on',
  async (type) => {
    expect((await ask({ type })).opened?.contentType).toBe(type)
  },
)

test('an answer that is no audio is refused, and its connection closed', async () => {
  const { error, chunks } = await ask({ type: `text/html; ${'x'.repeat(100)}` })
  expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
  expect(error?.message).toBe(
    `The upstream returned text/html; ${'x'.repeat(53)} instead of audio.`,
  )
  expect(chunks.isReturned).toBe(true)
})

test('an answer without audio is refused', async () => {
  expect((await ask({ pieces: [] })).error).toMatchObject({ kind: 'upstream_invalid_answer' })
  expect((await ask({ status: 500 })).error).toMatchObject({ kind: 'upstream_error' })
})

test('empty pieces are skipped, and pieces are copied', async () => {
  const piece = Uint8Array.of(4, 5)
  const { opened, chunks } = await ask({
    pieces: [new Uint8Array(), bytes, new Uint8Array(), piece],
  })
  expect(opened?.first).toEqual(bytes)
  const second = await opened?.next()
  piece.fill(0)
  expect(second).toEqual(Uint8Array.of(4, 5))
  expect(await opened?.next()).toBeNull()
  opened?.cancel()
  expect(chunks.isReturned).toBe(true)
})

/** The header of a file with one byte for each millisecond. */
const byteEachMs = new Uint8Array(44)
new DataView(byteEachMs.buffer).setUint32(28, 1_000, true)

describe('the audio of a call', () => {
  /** Reads these pieces. */
  function read(format: SpeakInput['format'], pieces: (Uint8Array | Error)[]) {
    const call = new OpenCall('speak', 'm', { context: makeRequestContext(), targets: [] })
    const seen = { settled: 0, cancelled: 0 }
    const [first, ...rest] = pieces
    const opened: OpenedSpeech = {
      contentType: 'audio/x',
      first: first instanceof Uint8Array ? first : bytes,
      async next() {
        const piece = rest.shift() ?? null
        if (piece instanceof Error) throw piece
        return piece
      },
      cancel: () => void seen.cancelled++,
    }
    const settle = () => void seen.settled++
    const deadlines = { gapMs: 60_000, totalMs: 60_000 }
    const audio = readSpeech(call, opened, { input: { ...input, format }, deadlines, settle })
    return { audio, seen, record: call.record }
  }

  test.each([
    ['pcm', [new Uint8Array(48_000), new Uint8Array(24_000)], 1_500],
    ['wav', [wavFile(new Uint8Array(32_000)), new Uint8Array(16_000)], 1_500],
    ['wav', [wavFile(new Uint8Array(0)).slice(0, 43)], null],
    ['wav', [new Uint8Array(44)], null],
    ['mp3', [new Uint8Array(48_000)], null],
    ['wav', [byteEachMs, new Uint8Array(1)], 1],
    ['wav', [byteEachMs], 0],
    ['pcm', [new Uint8Array(24)], 1],
  ] as const)('as %s has the duration that its bytes tell', async (format, pieces, audioMs) => {
    const { audio, seen, record } = read(format, [...pieces])
    for await (const _ of { [Symbol.asyncIterator]: () => audio.bytes });
    expect(audio.audioMs()).toBe(audioMs)
    expect(record).toMatchObject({
      audioMs: audioMs ?? 0,
      outcome: 'completed',
      usage: { inputTokens: 5, outputTokens: 0, totalTokens: 5 },
    })
    expect(seen).toEqual({ settled: 1, cancelled: 0 })
    expect(await audio.bytes.next()).toEqual({ done: true, value: undefined })
    expect(await audio.bytes.return()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ settled: 1, cancelled: 0 })
  })

  test('that breaks off fails the call, once', async () => {
    const { audio, seen, record } = read('pcm', [new Uint8Array(480), new Error('lost')])
    await audio.bytes.next()
    await expect(audio.bytes.next()).rejects.toMatchObject({ kind: 'internal_error' })
    expect(record).toMatchObject({ outcome: 'failed', audioMs: 10 })
    expect(await audio.bytes.next()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ settled: 1, cancelled: 0 })
  })

  test('that ends during a read is not passed on', async () => {
    const { audio } = read('pcm', [new Uint8Array(480), new Uint8Array(480)])
    await audio.bytes.next()
    const reading = audio.bytes.next()
    await audio.bytes.return()
    expect(await reading).toEqual({ done: true, value: undefined })
    expect(audio.audioMs()).toBe(10)
  })

  test('that nobody reads any more ends the call', async () => {
    const { audio, seen, record } = read('pcm', [new Uint8Array(480)])
    await audio.bytes.return()
    await audio.bytes.return()
    expect(seen).toEqual({ settled: 1, cancelled: 1 })
    expect(record.outcome).toBe('cancelled')
    expect(await audio.bytes.next()).toEqual({ done: true, value: undefined })
  })
})

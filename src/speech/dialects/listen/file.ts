import { type Static, Type } from '@sinclair/typebox'
import type { CallerContext } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import type { Transcript } from '#speech/recognition/recognition.ts'
import { fileTooLarge } from '#speech/transcriptions/errors.ts'
import type { Transcriptions } from '#speech/transcriptions/transcriptions.ts'
import type { ListenParameters } from './parameters.ts'
import { describeModel, renderAlternative } from './results.ts'

const word = Type.Object({
  word: Type.String(),
  start: Type.Number(),
  end: Type.Number(),
  confidence: Type.Number(),
  punctuated_word: Type.String(),
})

export const listenResponse = Type.Object(
  {
    metadata: Type.Object({
      transaction_key: Type.String(),
      request_id: Type.String(),
      sha256: Type.String(),
      created: Type.String(),
      duration: Type.Number(),
      channels: Type.Integer(),
      models: Type.Array(Type.String()),
      model_info: Type.Record(Type.String(), Type.Unknown()),
      untranscribed_ms: Type.Optional(Type.Integer()),
    }),
    results: Type.Object({
      channels: Type.Array(
        Type.Object({
          alternatives: Type.Array(
            Type.Object({
              transcript: Type.String(),
              confidence: Type.Number(),
              words: Type.Array(word),
            }),
          ),
        }),
      ),
      utterances: Type.Optional(
        Type.Array(
          Type.Object({
            id: Type.String(),
            start: Type.Number(),
            end: Type.Number(),
            confidence: Type.Number(),
            channel: Type.Integer(),
            transcript: Type.String(),
            words: Type.Array(word),
          }),
        ),
      ),
    }),
  },
  { $id: 'ListenResponse' },
)
type ListenResponse = Static<typeof listenResponse>

/** Transcribes the body of a request like a file of `/v1/audio/transcriptions`. */
export async function transcribeBody(
  deps: {
    readonly transcriptions: Transcriptions
    readonly config: Pick<Config, 'speech'>
    readonly now: () => Date
  },
  given: {
    readonly parameters: ListenParameters
    readonly context: CallerContext
    readonly request: Request
    readonly body: AsyncIterable<Uint8Array>
  },
): Promise<ListenResponse> {
  const { parameters, context, request } = given
  const { speech } = deps.config
  requireFile(request, parameters)
  if (Number(request.headers.get('content-length') ?? 0) > speech.fileBytesMax) {
    throw fileTooLarge(speech.fileBytesMax)
  }
  const upload = await deps.transcriptions.admit(context)
  try {
    const hash = new Bun.CryptoHasher('sha256')
    await upload.receive(null, hashed(given.body, hash))
    const { engineName, language, vocabulary } = parameters
    const finals: Transcript[] = []
    const parts = upload.transcribe({
      model: engineName ?? speech.models[0] ?? 'stt',
      language,
      vocabulary: [...vocabulary],
      // Lost speech is reported instead of failing.
      format: 'verbose_json',
      streams: false,
      includes: { words: true, segments: true },
      includesLogprobs: false,
    })
    for await (const part of parts) {
      if (part.type === 'finals') finals.push(...part.finals)
      else {
        const { engine, receivedMs, untranscribedMs } = part.stats
        const { uuid, info } = describeModel(engine.name)
        return {
          metadata: {
            transaction_key: 'deprecated',
            request_id: context.requestId,
            sha256: hash.digest('hex'),
            created: deps.now().toISOString(),
            duration: Math.round(receivedMs) / 1_000,
            channels: 1,
            models: [uuid],
            model_info: { [uuid]: info },
            ...(untranscribedMs > 0 && { untranscribed_ms: Math.round(untranscribedMs) }),
          },
          results: renderFinals(finals, parameters.utterances),
        }
      }
    }
    throw new Error('the transcript has no end')
  } finally {
    await upload.close()
  }
}

function requireFile(request: Request, { encoding }: ListenParameters): void {
  if (request.headers.get('content-type')?.startsWith('application/json')) {
    throw new AppError(
      'invalid_request',
      'Files at a URL are not supported; send the audio itself.',
    )
  }
  if (encoding === null || encoding === 'ogg-opus') return
  const message =
    'A file states its encoding itself; raw samples are accepted over WebSockets only.'
  throw new AppError('invalid_request', message, { param: 'encoding' })
}

async function* hashed(source: AsyncIterable<Uint8Array>, hash: Bun.CryptoHasher) {
  for await (const bytes of source) {
    hash.update(bytes)
    yield bytes
  }
}

function renderFinals(
  finals: readonly Transcript[],
  hasUtterances: boolean,
): ListenResponse['results'] {
  const spoken = finals.map((final) => ({ final, words: final.words.map(inSeconds) }))
  const known = finals.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]))
  const mean = known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length
  const text = finals.map((final) => final.text).join(' ')
  const words = spoken.flatMap((each) => each.words)
  return {
    channels: [{ alternatives: [renderAlternative(text, mean, words)] }],
    ...(hasUtterances && {
      utterances: spoken.map(({ final, words: own }) => ({
        id: Bun.randomUUIDv7(),
        start: final.startMs / 1_000,
        end: final.endMs / 1_000,
        channel: 0,
        ...renderAlternative(final.text, final.confidence, own),
      })),
    }),
  }
}

function inSeconds({ word: text, startMs, endMs, confidence }: Transcript['words'][number]) {
  return { word: text, start: startMs / 1_000, end: endMs / 1_000, confidence }
}

export const listenExample: ListenResponse = {
  metadata: {
    transaction_key: 'deprecated',
    request_id: 'req_7k2v9d4m1xq8p0rzsw5b3hngtc',
    sha256: '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9',
    created: '2026-11-23T21:00:00.000Z',
    duration: 1.6,
    channels: 1,
    models: ['5feceb66-ffc8-6f38-d952-786c6d696c79'],
    model_info: {},
  },
  results: {
    channels: [{ alternatives: [{ transcript: 'good morning', confidence: 0.97, words: [] }] }],
  },
}

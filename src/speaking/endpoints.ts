import { bytes, type Endpoint, endpoint, eventStream, jsonBody } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { renderError } from '#http/error-envelope.ts'
import { streamEvents } from '#http/event-stream.ts'
import { toLine } from '#http/frame-text.ts'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'
import type { Inference } from '#inference/inference.ts'
import type { SpeakInput, SpokenAudio } from '#inference/speak.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import {
  readSpeechRequest,
  type SpeechEvent,
  type SpeechRequest,
  speakBody,
  speechEvent,
} from './schema.ts'

export type SpeakingDeps = {
  readonly inference: Pick<Inference, 'speak'>
  readonly modelResolver: Pick<ModelResolver, 'resolve' | 'resolveMode'>
  readonly limits: Pick<Limits, 'rateLimits'>
  readonly config: Pick<Config, 'speech' | 'stream'>
}

export function speakingEndpoints({
  inference,
  modelResolver,
  limits,
  config,
}: SpeakingDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/audio/speech',
      permission: 'can_access_api',
      tag: 'Speech',
      summary: 'Speak a text',
      description: `Compatible with OpenAI's endpoint, over upstreams with \`POST /audio/speech\` and models of mode \`speak\`. Audio
is passed on while the upstream produces it, as fast as the client reads; a failure after the first byte cuts the
response off, or, with \`stream_format: "sse"\`, is an \`error\` event. Usage counts the characters of the input as
input tokens, and the seconds of \`wav\` and \`pcm\`.`,
      body: jsonBody(speakBody, {
        example: { model: 'kokoro', input: 'Good morning.', voice: 'alloy' },
        read: (body) => readSpeechRequest(body, config.speech.speakCharsMax),
      }),
      responses: {
        200: {
          description: 'The audio, in the format that was requested.',
          content: {
            ...bytes(
              'audio/mpeg',
              'audio/ogg',
              'audio/aac',
              'audio/flac',
              'audio/wav',
              'audio/pcm',
            ),
            ...eventStream(speechEvent, exampleEvents),
          },
        },
      },
      errors: {
        invalid_request: 'input may have at most 4096 characters.',
        model_mode_mismatch: 'The model "llama-3.3-70b" has mode generate; mode speak is required.',
        model_not_found: 'The model "kokoro" does not exist.',
        rate_limit_exceeded:
          'The upstream returned status 429, or too many calls of the key wait for the model.',
        queue_full: 'Too many calls wait for the model.',
        queue_timeout: 'All upstreams of the model were busy for 60 s.',
        upstream_overloaded: 'The upstream returned status 503.',
        upstream_invalid_answer: 'The upstream returned no audio.',
        upstream_unreachable: 'The upstream could not be reached.',
        upstream_first_event_timeout: 'The upstream sent no output within 300 s.',
      },
      async handle({ body, context, set }) {
        const { principal } = context
        const { model, input } = await withAgent(modelResolver, body, principal)
        const { id, targets } = await modelResolver.resolveMode(principal, model, 'speak')
        const call = { context, targets, modelId: id }
        const spoken = await inference.speak(call, model, input)
        // A client that disconnects before the body is read does not cancel the stream.
        const abandon = () => void spoken.bytes.return()
        context.signal.addEventListener('abort', abandon, { once: true })
        const response = await respond(spoken, body, { ...config.stream, context })
        setRateLimitHeaders(set.headers, limits.rateLimits(principal, id), 'responses')
        return response
      },
    }),
  ]
}

/** The request with what its agent says. Throws `invalid_request` for an agent without a voice. */
async function withAgent(
  modelResolver: Pick<ModelResolver, 'resolve'>,
  { agent: name, model, voice, input }: SpeechRequest,
  principal: RequestPrincipal,
): Promise<{ model: string; input: SpeakInput }> {
  if (name === null) return { model: model ?? '', input: { ...input, voice: voice ?? '' } }
  const speech = (await modelResolver.resolve(principal, name)).agent?.speech ?? null
  if (speech === null) {
    throw new AppError('invalid_request', 'agent must be an agent that has a voice.', {
      param: 'agent',
    })
  }
  const { speed = speech.speed, instructions = speech.instructions, ...rest } = input
  return {
    model: model ?? speech.model,
    input: {
      ...rest,
      voice: voice ?? speech.voice,
      ...(speed === null ? {} : { speed }),
      ...(instructions === null ? {} : { instructions }),
    },
  }
}

type Pace = Omit<Parameters<typeof streamEvents>[1], 'closing'>

function respond(spoken: SpokenAudio, request: SpeechRequest, pace: Pace): Promise<Response> {
  const abandon = () => void spoken.bytes.return()
  if (!request.sendsEvents) {
    const source = {
      items: spoken.bytes,
      renderer: { push: (audio: Uint8Array) => audio },
      // Bytes have no place for an error: an incomplete file must not look complete.
      fail: () => null,
      keepAlive: null,
      abandon,
    }
    return streamEvents(source, { ...pace, closing: '', contentType: spoken.contentType })
  }
  const source = {
    items: toEvents(spoken, request),
    renderer: { push: frameOf },
    fail: (error: Parameters<typeof renderError>[0]) =>
      frameOf({ type: 'error', ...renderError(error) }),
    keepAlive: null,
    abandon,
  }
  return streamEvents(source, { ...pace, closing: '' })
}

async function* toEvents(
  { bytes: audio }: SpokenAudio,
  { input }: SpeechRequest,
): AsyncGenerator<SpeechEvent, undefined> {
  try {
    for (;;) {
      const { done, value } = await audio.next()
      if (done) break
      yield { type: 'speech.audio.delta', audio: Buffer.from(value).toString('base64') }
    }
    const chars = input.text.length
    const usage = { input_tokens: chars, output_tokens: 0, total_tokens: chars }
    yield { type: 'speech.audio.done', usage }
  } finally {
    await audio.return()
  }
}

function frameOf(event: SpeechEvent): string {
  return `data: ${toLine(event)}\n\n`
}

const exampleEvents = [
  { type: 'speech.audio.delta' as const, audio: 'SUQzBAAAAAAAI1RTU0UAAAA=' },
  {
    type: 'speech.audio.done' as const,
    usage: { input_tokens: 13, output_tokens: 0, total_tokens: 13 },
  },
]
  .map(frameOf)
  .join('')

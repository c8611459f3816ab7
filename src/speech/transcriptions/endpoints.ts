import { Type } from '@sinclair/typebox'
import {
  type CallerContext,
  type Endpoint,
  endpoint,
  eventStream,
  form,
  rawBody,
} from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { renderError } from '#http/error-envelope.ts'
import { type FrameSource, type StreamPace, streamEvents } from '#http/event-stream.ts'
import { toLine } from '#http/frame-text.ts'
import { readMultipart } from '#http/multipart.ts'
import { AppError } from '#lib/errors.ts'
import { languages } from '#speech/engine.ts'
import { fileTooLarge, messages } from './errors.ts'
import {
  type Transcription,
  type TranscriptionEvent,
  transcription,
  transcriptionEvent,
  verboseTranscription,
} from './record.ts'
import { heartbeatEvent, renderTranscript, streamTranscript } from './render.ts'
import {
  misplacedFile,
  readTranscriptionRequest,
  type TranscriptionRequest,
  transcriptionForm,
} from './request.ts'
import type { Transcriptions, Upload } from './transcriptions.ts'

/** A second file is refused with the name of its field. */
const formLimits = { fieldsMax: 64, fieldBytesMax: 65_536, filesMax: 2 }
/** The size of a form in addition to its file. */
const formBytesMax = 1_048_576
const untranscribedHeader = 'x-untranscribed-ms'
const incompleteHeader = 'x-transcript-incomplete'

export function transcriptionEndpoints({
  transcriptions,
  config,
}: {
  transcriptions: Transcriptions
  config: Pick<Config, 'files' | 'speech' | 'stream'>
}): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/audio/transcriptions',
      permission: 'can_access_api',
      tag: 'Speech',
      summary: 'Transcribe a file',
      description: `Compatible with OpenAI's endpoint. The file is never held in memory; its size is limited by the configuration,
and its format is detected from its first bytes. With \`stream=true\` finals are sent as they are recognised, as events
without names: \`transcript.text.delta\` and, with \`verbose_json\`, \`transcript.text.segment\`; then
\`transcript.text.done\` or \`error\`; last \`[DONE]\`. If speech is lost in an engine failure, the request fails with
\`audio_lost\`, except with \`verbose_json\`, which lists the missing spans. If a deadline of the engine passes after some
text was recognised, that text is returned, with \`warnings\` and the header \`x-transcript-incomplete\`.`,
      body: rawBody(form(transcriptionForm)),
      responses: { 200: transcriptResponse },
      errors,
      async handle({ context, request, server }) {
        requireAcceptedSize(request, config.speech.fileBytesMax)
        // Transcription takes time; `fileMs` limits it.
        server?.timeout(request, 0)
        const upload = await transcriptions.admit(context)
        try {
          const parameters = await receiveForm(request, upload, config)
          return parameters.streams
            ? await streamResponse(upload, parameters, {
                ...config.stream,
                context,
              })
            : await completeResponse(upload, parameters)
        } catch (error) {
          await upload.close()
          throw error
        }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/audio/translations',
      permission: 'can_access_api',
      tag: 'Speech',
      summary: 'Translate a file',
      description: 'Always refused: speech engines transcribe in the language of the recording.',
      body: rawBody(form(transcriptionForm)),
      responses: {
        200: { ...transcriptResponse, description: 'Of no engine of this release.' },
      },
      errors: { invalid_request: noTranslation },
      handle() {
        throw new AppError('invalid_request', noTranslation.message, {
          code: noTranslation.code,
          param: 'model',
        })
      },
    }),
  ]
}

const noTranslation = {
  code: 'translation_not_supported',
  message:
    'No speech engine of this gateway translates. POST /v1/audio/transcriptions transcribes in the language of the recording.',
}

/** Refuses a file that announces too large a size before it is uploaded. */
function requireAcceptedSize(request: Request, fileBytesMax: number): void {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced <= fileBytesMax + formBytesMax) return
  throw fileTooLarge(fileBytesMax)
}

async function receiveForm(
  request: Request,
  upload: Upload,
  { files, speech }: Pick<Config, 'files' | 'speech'>,
): Promise<TranscriptionRequest> {
  const limits = { ...formLimits, gapMs: files.uploadGapMs, totalMs: speech.fileMs }
  let hasFile = false
  const { values } = await readMultipart(request, limits, (part, bytes) => {
    if (part.field !== 'file' || hasFile) throw misplacedFile(part.field, hasFile)
    hasFile = true
    return upload.receive(part.filename, bytes)
  })
  return readTranscriptionRequest(values)
}

async function completeResponse(upload: Upload, request: TranscriptionRequest): Promise<Response> {
  const { body, contentType, end } = await renderTranscript(upload.transcribe(request), request)
  const untranscribedMs = Math.round(end.stats.untranscribedMs)
  const headers = new Headers({ 'content-type': contentType })
  // Texts and captions cannot contain them.
  if (untranscribedMs > 0) headers.set(untranscribedHeader, String(untranscribedMs))
  if (end.incomplete !== null) headers.set(incompleteHeader, end.incomplete.wireCode)
  return new Response(body, { headers })
}

function streamResponse(
  upload: Upload,
  request: TranscriptionRequest,
  pace: StreamPace & { context: CallerContext },
): Promise<Response> {
  const source: FrameSource<readonly TranscriptionEvent[]> = {
    items: streamTranscript(upload.transcribe(request), request),
    renderer: { push: (events) => events.map(frameOf).join('') },
    fail: (error) => frameOf({ type: 'error', ...renderError(error) }),
    keepAlive: { open: () => frameOf(heartbeatEvent), heartbeat: () => frameOf(heartbeatEvent) },
    abandon: () => upload.abandon(),
  }
  return streamEvents(source, { ...pace, closing: 'data: [DONE]\n\n' })
}

/** The events of this endpoint have no names on the wire. */
function frameOf(event: TranscriptionEvent): string {
  return `data: ${toLine(event)}\n\n`
}

const example: Transcription = {
  text: 'good morning',
  usage: { type: 'duration', seconds: 1.6 },
}
const streamExample: readonly TranscriptionEvent[] = [
  { type: 'transcript.text.delta', delta: 'good morning' },
  { type: 'transcript.text.done', ...example },
]
const text = (sample: string) => ({ schema: Type.String(), example: sample })

const transcriptResponse = {
  description: 'The transcript in the requested format.',
  content: {
    'application/json': { schema: Type.Union([transcription, verboseTranscription]), example },
    'text/plain': text('good morning\n'),
    'application/x-subrip': text('1\n00:00:00,420 --> 00:00:01,180\ngood morning\n\n'),
    'text/vtt': text('WEBVTT\n\n00:00:00.420 --> 00:00:01.180\ngood morning\n\n'),
    ...eventStream(transcriptionEvent, `${streamExample.map(frameOf).join('')}data: [DONE]\n\n`),
  },
  headers: {
    [untranscribedHeader]: 'Milliseconds of speech without text, if any.',
    [incompleteHeader]: 'The missed deadline that ended the transcript before the audio, if any.',
  },
}

const errors = {
  invalid_request: [
    messages.noFile,
    { code: 'unsupported_language', message: messages.unsupportedLanguage(languages) },
    { code: 'unsupported_file_format', message: messages.unsupportedFormat('is unknown') },
    { code: 'bad_audio', message: messages.noAudio },
  ],
  model_not_found: messages.unknownModel('whisper-9'),
  request_timeout: 'The request body did not arrive in time.',
  request_too_large: { code: 'file_too_large', message: messages.fileTooLarge(209_715_200) },
  rate_limit_exceeded: messages.tooManyFiles(100),
  upstream_error: [
    { code: 'engine_failed', message: messages.engine_failed },
    { code: 'audio_lost', message: messages.audioLost(12_300, 15_000) },
  ],
  service_unavailable: [
    { code: 'engine_busy', message: messages.engine_busy },
    { code: 'capacity', message: messages.capacity },
  ],
  upstream_gap_timeout: [
    { code: 'engine_stalled', message: messages.engine_stalled },
    { code: 'finalize_timeout', message: messages.finalize_timeout },
  ],
  upstream_total_timeout: { code: 'transcription_timeout', message: messages.timeout(600_000) },
  insufficient_storage: 'There is not enough disk space for this file.',
}

import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { renderError } from '#http/error-envelope.ts'
import { type FrameSource, streamEvents } from '#http/event-stream.ts'
import { toLine } from '#http/frame-text.ts'
import { readMultipart } from '#http/multipart.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { AppError } from '#lib/errors.ts'
import type { TranscriptionEvent } from './answer-schema.ts'
import { transcriptionOperation } from './operations.ts'
import { readTranscriptionRequest, type TranscriptionRequest } from './read-request.ts'
import { renderTranscript, wholeTranscript } from './render.ts'
import { heartbeatEvent, streamTranscript } from './render-stream.ts'
import type { Receipt, Transcriptions } from './transcriptions.ts'

export type TranscriptionRoutesDeps = {
  auth: Auth
  transcriptions: Transcriptions
  config: Pick<Config, 'files' | 'speech' | 'stream'>
}

const formLimits = { fieldsMax: 64, fieldBytesMax: 65_536, filesMax: 1 }
/** A form is a little longer than what is in it. */
const formBytesMax = 1_048_576
const untranscribedHeader = 'x-untranscribed-ms'

/** `POST /v1/audio/transcriptions`, as OpenAI's: a file in, its text out, at once or as a stream. */
export function transcriptionRoutes({ auth, transcriptions, config }: TranscriptionRoutesDeps) {
  return new Elysia({ name: 'transcriptions', prefix: '/v1/audio/transcriptions' })
    .use(guard(auth))
    .post(
      '/',
      async ({ request, principal, server, set }) => {
        refuseAnnounced(request, config.speech.fileBytesMax)
        // An engine takes its time; the deadline of the file bounds it.
        server?.timeout(request, 0)
        const { userId } = principal
        const { signal } = request
        const receipt = transcriptions.receive({ userId, signal, requestId: requestIdOf(set) })
        try {
          const asked = await takeForm(request, receipt, config)
          return asked.streams
            ? await streamAnswer(receipt, asked, config.stream)
            : await wholeAnswer(receipt, asked)
        } catch (error) {
          await receipt.close()
          throw error
        }
      },
      { requires: 'can_access_api', parse: 'none', detail: transcriptionOperation },
    )
}

/** Before the bytes: nobody shall send a long file in vain. */
function refuseAnnounced(request: Request, fileBytesMax: number): void {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced <= fileBytesMax + formBytesMax) return
  throw new AppError('request_too_large', `A file may have ${fileBytesMax} bytes.`, {
    code: 'file_too_large',
  })
}

async function takeForm(
  request: Request,
  receipt: Receipt,
  { files, speech }: TranscriptionRoutesDeps['config'],
): Promise<TranscriptionRequest> {
  const limits = { ...formLimits, gapMs: files.uploadGapMs, totalMs: speech.fileMs }
  const { values } = await readMultipart(request, limits, (part, bytes) => {
    if (part.field === 'file') return receipt.take(part.filename, bytes)
    throw new AppError('invalid_request', 'Send the audio as a file in the field "file".', {
      param: 'file',
    })
  })
  return readTranscriptionRequest(values)
}

async function wholeAnswer(receipt: Receipt, asked: TranscriptionRequest): Promise<Response> {
  const transcript = await wholeTranscript(receipt.begin(asked))
  const { body, contentType } = renderTranscript(transcript, asked)
  const missing = Math.round(transcript.stats.untranscribedMs)
  return new Response(body, {
    headers: {
      'content-type': contentType,
      // Texts and captions have no other place to tell it.
      ...(missing === 0 ? {} : { [untranscribedHeader]: String(missing) }),
    },
  })
}

function streamAnswer(
  receipt: Receipt,
  asked: TranscriptionRequest,
  pace: Config['stream'],
): Promise<Response> {
  const source: FrameSource<readonly TranscriptionEvent[]> = {
    items: streamTranscript(receipt.begin(asked), asked),
    render: (events) => events.map(frameOf).join(''),
    fail: (error) => frameOf({ type: 'error', ...renderError(error) }),
    life: { open: () => frameOf(heartbeatEvent), heartbeat: () => frameOf(heartbeatEvent) },
    commit: () => {},
    abandon: () => receipt.abandon(),
  }
  return streamEvents(source, { ...pace, closing: 'data: [DONE]\n\n' })
}

/** Events of this route have no names on the wire. */
function frameOf(event: TranscriptionEvent): string {
  return `data: ${toLine(event)}\n\n`
}

import { readError, unreachable } from '../../api/errors.ts'
import type { TranscriptionEvent } from '../../api/generated/types.ts'
import { credential } from '../../session/credential.ts'
import type { Segment } from './transcript.ts'

type FileProgress = {
  readonly phase: 'uploading' | 'transcribing'
  /** From 0 to 1; null: unknown. */
  readonly share: number | null
}

type FileTranscription = {
  readonly file: File
  readonly model: string
  readonly language: string
  readonly signal: AbortSignal
  readonly onProgress: (progress: FileProgress) => void
  readonly onSegment: (segment: Segment) => void
}

export type FileResult = {
  readonly audioMs: number
  readonly untranscribedMs: number
  readonly gaps: readonly { start: number; end: number }[]
  readonly warnings: readonly { code: string; message: string }[]
}

/** Sends a file and reads its segments as they come. `fetch` does not tell how much was sent. */
export async function transcribeFile(params: FileTranscription): Promise<FileResult> {
  const { file, model, language, signal, onProgress, onSegment } = params
  const durationS = await durationOf(file)
  const form = new FormData()
  const fields = { model, language, response_format: 'verbose_json', stream: 'true' }
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', file)
  let result: FileResult | null = null
  let failure: Error | null = null
  let count = 0
  const read = createEventReader((event) => {
    if (event.type === 'transcript.text.segment') {
      const { start, end, text } = event
      count += 1
      onSegment({ id: `file.${count}`, start, end, text, stableText: null, words: [] })
      onProgress({ phase: 'transcribing', share: durationS === null ? null : end / durationS })
    } else if (event.type === 'transcript.text.done') {
      result = {
        audioMs: (event.usage?.seconds ?? 0) * 1000,
        untranscribedMs: event.untranscribed_ms ?? 0,
        gaps: event.gaps ?? [],
        warnings: event.warnings ?? [],
      }
    } else if (event.type === 'error') {
      failure = new Error(event.error.message)
    }
  })
  await send(form, {
    signal,
    onUploaded: (share) =>
      onProgress(
        share < 1 ? { phase: 'uploading', share } : { phase: 'transcribing', share: null },
      ),
    onText: read,
  })
  if (failure !== null) throw failure
  if (result === null) throw unreachable()
  return result
}

function send(
  form: FormData,
  options: {
    signal: AbortSignal
    onUploaded: (share: number) => void
    onText: (text: string) => void
  },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', '/v1/audio/transcriptions')
    for (const [name, value] of Object.entries(credential.headers('POST'))) {
      request.setRequestHeader(name, value)
    }
    request.upload.onprogress = ({ loaded, total }) => options.onUploaded(loaded / total)
    request.onprogress = () => {
      if (request.status === 200) options.onText(request.responseText)
    }
    request.onload = async () => {
      if (request.status === 200) {
        options.onText(request.responseText)
        return resolve()
      }
      if (request.status === 401) credential.expired()
      const headers = { 'x-request-id': request.getResponseHeader('x-request-id') ?? '' }
      reject(
        await readError(new Response(request.responseText, { status: request.status, headers })),
      )
    }
    request.onerror = () => reject(unreachable())
    request.onabort = () => reject(options.signal.reason)
    options.signal.addEventListener('abort', () => request.abort())
    request.send(form)
  })
}

/** Gets the whole text so far each time. */
function createEventReader(onEvent: (event: TranscriptionEvent) => void) {
  let done = 0
  return (text: string) => {
    for (let end = text.indexOf('\n\n', done); end !== -1; end = text.indexOf('\n\n', done)) {
      const data = text.slice(done, end).replace(/^data: /, '')
      done = end + 2
      if (data.startsWith('{')) onEvent(JSON.parse(data) as TranscriptionEvent)
    }
  }
}

const durationMs = 3_000

/** In seconds; null if this browser does not know the format. */
function durationOf(file: File): Promise<number | null> {
  return new Promise((resolve) => {
    const url = URL.createObjectURL(file)
    const element = new Audio()
    const finish = () => {
      URL.revokeObjectURL(url)
      resolve(Number.isFinite(element.duration) ? element.duration : null)
    }
    element.onloadedmetadata = finish
    element.onerror = finish
    setTimeout(finish, durationMs)
    element.preload = 'metadata'
    element.src = url
  })
}

import { createNumberRecogniser } from '#test/support/spoken-numbers.ts'

/** A scripted server with only `POST /v1/audio/transcriptions`, which recognises spoken numbers. */
export type TranscriptionsPeer = {
  readonly url: string
  readonly requests: readonly TranscriptionsRequest[]
  stop(): Promise<void>
}

type TranscriptionsRequest = {
  readonly authorization: string | null
  readonly fields: Readonly<Record<string, string>>
  readonly audioMs: number
}

export type TranscriptionsScript = {
  /** Whether it refuses `verbose_json`, as servers without word times do. */
  readonly lacksWords?: boolean
  /** The response to this request instead of a transcript; null: the transcript. */
  answer?(index: number): Response | null | Promise<Response | null>
}

const wavHeaderBytes = 44

export function startTranscriptionsPeer(script: TranscriptionsScript = {}): TranscriptionsPeer {
  const requests: TranscriptionsRequest[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response('no', { status: 405 })
      const form = await request.formData()
      const file = form.get('file')
      if (!(file instanceof File)) return new Response('no file', { status: 400 })
      const bytes = await file.arrayBuffer()
      const samples = new Int16Array(bytes.slice(wavHeaderBytes))
      const fields = Object.fromEntries(
        [...form].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
      )
      requests.push({
        authorization: request.headers.get('authorization'),
        fields,
        audioMs: samples.length / 16,
      })
      const answer = await script.answer?.(requests.length - 1)
      if (answer) return answer
      const isVerbose = fields['response_format'] === 'verbose_json'
      if (isVerbose && script.lacksWords === true) {
        return Response.json({ error: { message: 'unknown response_format' } }, { status: 400 })
      }
      const words = createNumberRecogniser().process(samples)
      const text = words.map(({ word }) => word).join(' ')
      const times = words.map(({ word, startMs, endMs }) => ({
        word,
        start: startMs / 1000,
        end: endMs / 1000,
      }))
      return Response.json(isVerbose ? { text, words: times } : { text })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    stop: () => server.stop(true),
  }
}

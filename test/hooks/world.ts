import { asRecord, parseJson } from '#lib/json.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/**
 * A chat upstream that repeats the last user message word by word, and a moderation endpoint that flags
 * "FLAGGED". After the word "WAIT" a stream pauses until `release`.
 */
export function startEcho() {
  const asked: string[] = []
  const moderated: string[][] = []
  const state = { moderationStatus: 200 }
  let waiting = Promise.withResolvers<void>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = asRecord(parseJson(await request.text()))
      if (request.url.endsWith('/moderations')) return moderate(body)
      if (request.method !== 'POST') return new Response(null, { status: 404 })
      const said = readLast(body['messages'])
      asked.push(said)
      const words = said.match(/\S+\s*/g) ?? []
      if (body['stream'] !== true) {
        const message = { role: 'assistant', content: said }
        return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
      }
      const pieces = words.map((content) => frameOf(chunk({ content })))
      const end = chatStream([chunk({}, 'stop')])
      const { promise } = waiting
      const paused = words.findIndex((word) => word.startsWith('WAIT')) + 1
      async function* stream() {
        if (paused > 0) {
          yield pieces.slice(0, paused).join('')
          await promise
        }
        yield pieces.slice(paused).join('') + end
      }
      return new Response(stream() as never, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  function moderate({ input }: Record<string, unknown>): Response {
    const texts = Array.isArray(input) ? input.map(String) : []
    moderated.push(texts)
    const results = texts.map((text) => {
      const flagged = text.includes('FLAGGED')
      return { flagged, categories: { violence: flagged, hate: false } }
    })
    return Response.json({ id: 'modr-1', results }, { status: state.moderationStatus })
  }
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    state,
    asked: () => asked,
    moderated: () => moderated,
    release() {
      waiting.resolve()
      waiting = Promise.withResolvers()
    },
    stop: () => server.stop(true),
  }
}

function frameOf(payload: object): string {
  return `data: ${JSON.stringify(payload)}\n\n`
}

function readLast(messages: unknown): string {
  const { content } = asRecord(Array.isArray(messages) ? messages.at(-1) : null)
  if (typeof content === 'string') return content
  return Array.isArray(content)
    ? content.map((part) => String(asRecord(part)['text'])).join('')
    : ''
}

import { createServer, type ServerResponse } from 'node:http'
import { listenOnLoopback } from './loopback.ts'
import { chatStream } from './recordings.ts'
import { chunk } from './scripted-answers.ts'

/** A chat upstream that answers with its own name, and remembers who asked. */
export type NamedUpstream = {
  /** Ends with `/v1`. */
  readonly url: string
  /** The credentials of the generations so far. */
  readonly keys: () => readonly string[]
  /** Generations from now on begin, and wait for `release`. */
  hold(): void
  readonly held: () => number
  /** Ends the held generations, and holds no further ones. */
  release(): void
  stop(): Promise<void>
}

export async function startNamedUpstream(name: string): Promise<NamedUpstream> {
  const held = new Set<ServerResponse>()
  const keys: string[] = []
  let isHolding = false
  const beginning = chatStream([chunk({ content: `${name} begins ` })]).split('data: [DONE]')[0]
  const ending = chatStream([chunk({ content: `${name} ends` }), chunk({}, 'stop')])
  const server = createServer((request, response) => {
    request.resume()
    if (request.method !== 'POST') {
      response.writeHead(404).end()
      return
    }
    keys.push(request.headers.authorization ?? '')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(beginning)
    if (!isHolding) return void response.end(ending)
    held.add(response)
    response.on('close', () => held.delete(response))
  })
  const { port, stop } = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}/v1`,
    keys: () => keys,
    hold() {
      isHolding = true
    },
    held: () => held.size,
    release() {
      isHolding = false
      for (const response of held) response.end(ending)
    },
    stop,
  }
}

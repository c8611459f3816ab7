import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { temporaryFolder } from './process.ts'
import { chatStream } from './recordings.ts'
import { chunk } from './scripted-answers.ts'

/** A chat upstream whose responses begin at once and end on demand. It keeps idle connections open. */
export type HeldUpstream = {
  /** A configuration with this upstream and its model `held` only. */
  readonly configFile: string
  readonly baseUrl: string
  /** The number of responses that have begun and not ended. */
  readonly held: () => number
  /** Ends the pending responses; later ones end at once. */
  release(): void
  /** Ends the oldest pending response. */
  releaseFirst(): void
  stop(): Promise<void>
}

/** `settings`: further lines of the configuration, before its upstream. `words`: before the second one. */
export async function startHeldUpstream(
  settings = '',
  words: readonly string[] = ['first '],
): Promise<HeldUpstream> {
  const [beginning = '', ending = ''] = halves(
    chatStream([...words, 'second'].map((content) => chunk({ content })).concat(chunk({}, 'stop'))),
  )
  const held = new Set<ServerResponse>()
  let isReleased = false
  const server = createServer((request, response) => {
    request.resume()
    if (request.method !== 'POST') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (isReleased) {
      response.end(beginning + ending)
    } else {
      response.write(beginning)
      held.add(response)
      response.on('close', () => held.delete(response))
    }
  })
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4096, resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const baseUrl = `http://127.0.0.1:${port}/v1`
  const configFile = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(
    configFile,
    `${settings}[[upstream]]\nname = "held"\nurl = "${baseUrl}"\napi = "chat"\nmodels = ["held"]\n`,
  )
  return {
    configFile,
    baseUrl,
    held: () => held.size,
    release() {
      isReleased = true
      for (const response of held) response.end(ending)
    },
    releaseFirst() {
      for (const response of [...held].slice(0, 1)) response.end(ending)
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Before and after the second word. */
function halves(stream: string): string[] {
  const frames = stream.split('\n\n')
  const second = frames.findIndex((frame) => frame.includes('second'))
  const from = frames.slice(0, second).reduce((length, frame) => length + frame.length + 2, 0)
  return [stream.slice(0, from), stream.slice(from)]
}

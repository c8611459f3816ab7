import { afterAll, afterEach, beforeAll } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { endPassedTime } from '#test/support/passing-time.ts'
import { openSpeech, type SpeechClient } from '#test/support/speech-client.ts'
import {
  type SpeechServer,
  type SpeechServerOptions,
  startSpeechServer,
} from '#test/support/speech-server.ts'

/** Speech servers of the tests of one file, beside one gateway; each test stops its own. */
export function serveSpeech() {
  let gateway: Gateway
  let token = ''
  const servers: SpeechServer[] = []

  beforeAll(async () => {
    gateway = await startGateway()
    token = await gateway.token()
  })
  afterEach(async () => {
    endPassedTime()
    for (const server of servers.splice(0)) await server.stop()
  })
  afterAll(() => gateway.stop())

  return {
    /** Of the default user, once the tests run. */
    get token() {
      return token
    },
    tokenOf: (subject: string) => gateway.token(['users'], subject),

    start(options: SpeechServerOptions = {}): SpeechServer {
      const server = startSpeechServer(gateway, options)
      servers.push(server)
      return server
    },

    /** A client whose session has started, with flow control by credit. */
    async begin(server: SpeechServer): Promise<SpeechClient> {
      const client = await openSpeech(server.port, { token })
      await client.start({ options: { flow: 'credit' } })
      return client
    },
  }
}

import { afterEach, expect } from 'bun:test'
import { TLSSocket } from 'node:tls'
import { askFromProcess } from './ask-from-process.ts'
import { overEachTransport } from './over-each-transport.ts'
import {
  answering,
  chunk,
  chunkedHead,
  okAnswer,
  type Script,
  type ScriptedServer,
  serveScript,
} from './scripted-server.ts'

overEachTransport(import.meta.file, ({ test, kind }) => {
  const servers: ScriptedServer[] = []

  afterEach(() => {
    for (const server of servers.splice(0)) server.stop()
  })

  async function serveTls(certificate: string, script: Script = answering(okAnswer)) {
    const server = await serveScript(script, { certificate })
    servers.push(server)
    return server
  }

  const ask = (urls: readonly string[], environment?: Record<string, string>) =>
    askFromProcess(kind, urls, environment)
  const byName = ({ port }: ScriptedServer) => `https://localhost:${port}/`

  test('https works with a valid certificate and name', async () => {
    const server = await serveTls('localhost')
    expect(await ask([byName(server), byName(server)])).toEqual([
      { status: 200, text: 'ok', failure: 'null' },
      { status: 200, text: 'ok', failure: 'null' },
    ])
    expect(server.peers).toHaveLength(1)
    const socket = server.peers[0]?.socket
    expect(socket).toBeInstanceOf(TLSSocket)
    expect(socket).toMatchObject({ servername: 'localhost', alpnProtocol: 'http/1.1' })
  })

  test('an address is verified too, and is not sent as a server name', async () => {
    const server = await serveTls('localhost')
    const otherServer = await serveTls('elsewhere')
    expect(await ask([server.url, otherServer.url])).toEqual([
      { status: 200, text: 'ok', failure: 'null' },
      { refused: 'upstream_unreachable', why: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    ])
    expect(server.peers[0]?.socket).toMatchObject({ servername: false })
  })

  const untrusted: Record<string, string> = {
    'self-signed': 'DEPTH_ZERO_SELF_SIGNED_CERT',
    elsewhere: 'ERR_TLS_CERT_ALTNAME_INVALID',
  }

  for (const [certificate, why] of Object.entries(untrusted)) {
    for (const environment of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }]) {
      const where = Object.keys(environment).length === 0 ? '' : ', whatever the environment says'
      test(`the certificate ${certificate} is refused before a request is sent${where}`, async () => {
        const server = await serveTls(certificate)
        expect(await ask([byName(server)], environment)).toEqual([
          { refused: 'upstream_unreachable', why },
        ])
        for (const { bytesReceived } of server.peers) expect(bytesReceived).toBe(0)
      })
    }
  }

  test('an untrusted authority is refused', async () => {
    const server = await serveTls('localhost')
    expect(await ask([byName(server)], { NODE_EXTRA_CA_CERTS: '' })).toEqual([
      { refused: 'upstream_unreachable', why: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' },
    ])
  })

  test('a server that does not speak TLS is unreachable', async () => {
    const plain = await serveScript((peer) => peer.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    servers.push(plain)
    expect(await ask([byName(plain)])).toMatchObject([{ refused: 'upstream_unreachable' }])
  })

  test('a truncated stream over TLS is reported', async () => {
    const server = await serveTls('localhost', async (peer) => {
      await peer.nextRequest()
      peer.end(chunkedHead + chunk('begun'))
    })
    expect(await ask([byName(server)])).toMatchObject([
      { status: 200, failure: 'upstream_truncated' },
    ])
  })

  test('large bodies pass over TLS both ways, also with a paused reader', async () => {
    const server = await serveTls('localhost', async (peer) => {
      const { body } = await peer.nextRequest()
      await peer.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`)
      await peer.write(body)
    })
    expect(await ask([`${byName(server)}large`])).toEqual([
      { status: 200, text: '30000000 characters', failure: 'null' },
    ])
  })

  test('a stale TLS connection is replaced', async () => {
    const server = await serveTls('localhost', async (peer, index) => {
      await peer.nextRequest()
      await peer.write(okAnswer)
      await peer.nextRequest()
      if (index === 0) peer.end()
      else await peer.write(okAnswer)
    })
    expect(await ask([byName(server), byName(server), byName(server)])).toEqual([
      { status: 200, text: 'ok', failure: 'null' },
      { status: 200, text: 'ok', failure: 'null' },
      { status: 200, text: 'ok', failure: 'null' },
    ])
    expect(server.peers).toHaveLength(2)
  })
})

import { afterEach, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { askFromProcess } from './ask-from-process.ts'
import {
  answering,
  okAnswer,
  type Peer,
  type Script,
  type ScriptedServer,
  serveScript,
  tlsFixtures,
} from './scripted-server.ts'
import { failureOf, openTransport, request } from './transport-client.ts'

const servers: ScriptedServer[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.stop()
})

async function serve(script: Script, certificate?: string): Promise<ScriptedServer> {
  const server = await serveScript(script, certificate === undefined ? {} : { certificate })
  servers.push(server)
  return server
}

const ok = { status: 200, text: 'ok', failure: 'null' }

test('the proxy of the environment is used by fetch, not by the socket transport', async () => {
  const heads: string[] = []
  const proxy = await serve(async (peer) => {
    heads.push((await peer.nextRequest()).head)
    await peer.write(okAnswer)
  })
  const url = 'http://upstream.invalid/v1/models'
  const environment = { HTTP_PROXY: proxy.url }
  expect(await askFromProcess('fetch', [url], environment)).toEqual([ok])
  expect(heads).toEqual([
    expect.stringMatching(/^POST http:\/\/upstream\.invalid\/v1\/models HTTP/),
  ])
  expect(await askFromProcess('socket', [url], environment)).toMatchObject([
    { refused: 'upstream_unreachable' },
  ])
})

test('https is tunnelled through a proxy, and the upstream is verified', async () => {
  const right = await serve(answering(okAnswer), 'localhost')
  const wrong = await serve(answering(okAnswer), 'elsewhere')
  const asked: string[] = []
  const proxy = await serve(async (peer) => {
    const { head } = await peer.nextRequest()
    asked.push(head.split('\r\n')[0] ?? '')
    await tunnel(peer, Number(/^CONNECT localhost:(\d+) /.exec(head)?.[1]))
  })
  const urls = [right, wrong].map(({ port }) => `https://localhost:${port}/`)
  expect(await askFromProcess('fetch', urls, { HTTPS_PROXY: proxy.url })).toEqual([
    ok,
    { refused: 'upstream_unreachable', why: 'ERR_TLS_CERT_ALTNAME_INVALID' },
  ])
  expect(asked).toEqual([right, wrong].map(({ port }) => `CONNECT localhost:${port} HTTP/1.1`))
})

async function tunnel(peer: Peer, port: number): Promise<void> {
  const upstream = connect(port, '127.0.0.1')
  upstream.on('error', () => peer.socket.destroy())
  peer.socket.on('close', () => upstream.destroy())
  await peer.write('HTTP/1.1 200 Connected\r\n\r\n')
  peer.socket.pipe(upstream).pipe(peer.socket)
}

test('an HTTP/2-only upstream is reached by fetch, where Bun is configured for it', async () => {
  const upstream = Bun.serve({
    port: 0,
    http1: false,
    http2: true,
    tls: {
      cert: readFileSync(join(tlsFixtures, 'localhost.pem')),
      key: readFileSync(join(tlsFixtures, 'localhost.key')),
    },
    fetch: async (received) => new Response(`${received.method} ${await received.text()}`),
  })
  try {
    const urls = [`https://localhost:${upstream.port}/`]
    const environment = { BUN_FEATURE_FLAG_EXPERIMENTAL_HTTP2_CLIENT: '1' }
    expect(await askFromProcess('fetch', urls, environment)).toEqual([{ ...ok, text: 'POST {}' }])
    expect(await askFromProcess('socket', urls, environment)).toMatchObject([
      { refused: 'upstream_unreachable' },
    ])
  } finally {
    await upstream.stop(true)
  }
})

test('a failure does not repeat the URL, not even in the log', async () => {
  const transport = openTransport('fetch')
  const { url } = await serve((peer) => peer.reset())
  const error = await failureOf(transport.send(request(`${url}/v1?key=pass-word`)))
  expect(Bun.inspect(error)).toContain('ECONNRESET')
  expect(Bun.inspect(error)).not.toContain('pass-word')
})

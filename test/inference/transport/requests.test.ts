import { afterEach, expect } from 'bun:test'
import type { UpstreamHttpRequest } from '#inference/transport.ts'
import { overEachTransport } from './over-each-transport.ts'
import {
  answering,
  okAnswer,
  type Script,
  type ScriptedServer,
  serveScript,
} from './scripted-server.ts'
import { failureOf, request, textOf } from './transport-client.ts'

overEachTransport(import.meta.file, ({ test, openTransport }) => {
  const transport = openTransport()
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  async function serve(script: Script, host?: string): Promise<ScriptedServer> {
    server = await serveScript(script, host === undefined ? {} : { host })
    return server
  }

  /** The lines of a request to `path` that the server received; names in lower case. */
  async function sent(path: string, rest: Partial<UpstreamHttpRequest>) {
    const { url, peers } = await serve(() => {})
    const answer = transport.send(request(url + path, rest))
    while (peers.length === 0) await Bun.sleep(1)
    const received = await peers[0]?.nextRequest()
    await peers[0]?.write(okAnswer)
    await textOf(await answer)
    return { lines: linesOf(received?.head ?? ''), body: received?.body.toString() }
  }

  test('a request has its path, headers and body', async () => {
    const { lines, body } = await sent('/base/v1/chat?api-version=2&q=a%20b#part', {
      headers: { Authorization: 'Bearer key', accept: 'text/event-stream' },
      body: '{"text":"Grüße, 世界"}',
    })
    expect(lines[0]).toBe('POST /base/v1/chat?api-version=2&q=a%20b HTTP/1.1')
    expect(lines.slice(1).toSorted()).toEqual([
      'accept-encoding: identity',
      'accept: text/event-stream',
      'authorization: Bearer key',
      'connection: keep-alive',
      'content-length: 26',
      `host: 127.0.0.1:${server?.port}`,
      'user-agent: sluice/0.1',
    ])
    expect(body).toBe('{"text":"Grüße, 世界"}')
  })

  test('a request has no unexpected headers', async () => {
    const { lines } = await sent('/', {})
    expect(lines.slice(1).map((line) => line.split(':')[0])).toEqual([
      'host',
      'user-agent',
      'accept-encoding',
      'connection',
      'content-length',
    ])
  })

  test('a GET has no body and no length', async () => {
    const { url, peers } = await serve(answering(okAnswer))
    const { body: _body, ...withoutBody } = request(`${url}/v1/models`, { method: 'GET' })
    expect((await transport.send(withoutBody)).status).toBe(200)
    expect(peers).toHaveLength(1)
    const { lines } = await sent('/', { method: 'GET', body: '' })
    expect(lines[0]).toBe('GET / HTTP/1.1')
    expect(lines.some((line) => line.startsWith('content-length'))).toBe(false)
  })

  test('a POST without a body has length 0', async () => {
    expect((await sent('', { body: '' })).lines).toContain('content-length: 0')
  })

  test('a body of bytes is sent unchanged', async () => {
    const { lines, body } = await sent('/', { body: new TextEncoder().encode('bytes\0é') })
    expect(lines).toContain('content-length: 8')
    expect(body).toBe('bytes\0é')
  })

  test('host and user-agent can be set, in any case, and are sent once', async () => {
    const { lines } = await sent('/', { headers: { HOST: 'models.example', 'User-Agent': 'x/1' } })
    expect(lines.filter((line) => /^host|^user-agent/.test(line)).toSorted()).toEqual([
      'host: models.example',
      'user-agent: x/1',
    ])
  })

  test('a header set twice in different cases is sent once, with the last value', async () => {
    const { lines } = await sent('/', { headers: { authorization: 'a', Authorization: 'b' } })
    expect(lines.filter((line) => /^authorization/.test(line))).toEqual(['authorization: b'])
  })

  const forbiddenHeaders: Record<string, Record<string, string>> = {
    'a line feed in a value': { 'x-secret': 'value\nx-injected: 1' },
    'a carriage return in a value': { 'x-secret': 'value\r' },
    'a NUL in a value': { 'x-secret': 'value\0' },
    'a character beyond latin-1 in a value': { 'x-secret': 'value→' },
    'a line feed in a name': { 'x\nsecret-value': '1' },
    'an empty name': { '': 'value' },
    'a length of its own': { 'Content-Length': '1' },
    'a transfer encoding of its own': { 'transfer-encoding': 'chunked' },
    'an upgrade': { connection: 'upgrade' },
  }

  for (const [name, headers] of Object.entries(forbiddenHeaders)) {
    test(`${name} is refused before anything is sent, without repeating it in the error`, async () => {
      const { url, peers } = await serve(answering(okAnswer))
      const error = await failureOf(transport.send(request(url, { headers })))
      expect(String(error)).not.toContain('value')
      await textOf(await transport.send(request(url)))
      expect(peers).toHaveLength(1)
    })
  }

  const forbiddenUrls = [
    'http://name:pass-word@127.0.0.1/',
    'http://name@127.0.0.1/',
    'ftp://127.0.0.1/pass-word',
    'file:///pass-word',
    '/pass-word',
    'http://[::1/pass-word',
    'http://127.0.0.1:99999/pass-word',
  ]

  for (const url of forbiddenUrls) {
    test(`${url} is refused without repeating it`, async () => {
      const error = await failureOf(transport.send(request(url)))
      expect(String(error)).toMatch(/^Error: the URL of the upstream/)
      expect(String(error)).not.toContain('pass-word')
    })
  }

  test('an IPv6 address works, with brackets in the Host header', async () => {
    const { url, port, peers } = await serve(() => {}, '::1')
    const answer = transport.send(request(`${url}/v1`))
    while (peers.length === 0) await Bun.sleep(1)
    expect(linesOf((await peers[0]?.nextRequest())?.head ?? '')).toContain(`host: [::1]:${port}`)
    await peers[0]?.write(okAnswer)
    expect(await textOf(await answer)).toBe('ok')
  })

  test('a host name is resolved', async () => {
    const { port } = await serve(answering(okAnswer))
    expect(await textOf(await transport.send(request(`http://localhost:${port}/`)))).toBe('ok')
  })

  test('a redirect is not followed', async () => {
    const { url, peers } = await serve(
      answering('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'),
    )
    const answer = await transport.send(request(url))
    expect(answer.status).toBe(302)
    expect(answer.header('Location')).toBe('http://127.0.0.1:1/')
    expect(await textOf(answer)).toBe('')
    expect(peers).toHaveLength(1)
  })

  test('headers are found in any case, and are null when absent', async () => {
    const { url } = await serve(
      answering('HTTP/1.1 429 Slow\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n'),
    )
    const answer = await transport.send(request(url))
    expect([answer.status, answer.header('retry-after'), answer.header('RETRY-AFTER')]).toEqual([
      429,
      '7',
      '7',
    ])
    expect(answer.header('x-absent')).toBeNull()
    await textOf(answer)
  })

  test('a third-party server is understood', async () => {
    const other = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(received) {
        const text = await received.text()
        return new Response(`${received.headers.get('x-a')} ${text.length}`, { status: 201 })
      },
    })
    try {
      const body = 'x'.repeat(200_000)
      const answer = await transport.send(
        request(`${other.url}`, { headers: { 'x-a': 'b' }, body }),
      )
      expect(answer.status).toBe(201)
      expect(await textOf(answer)).toBe('b 200000')
    } finally {
      await other.stop(true)
    }
  })
})

/** The lines of a head, with the names of the headers in lower case. */
function linesOf(head: string): string[] {
  const [start = '', ...headers] = head.split('\r\n')
  return [start, ...headers.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()))]
}

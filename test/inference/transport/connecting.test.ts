import { afterEach, expect } from 'bun:test'
import { overEachTransport } from './over-each-transport.ts'
import { answering, okAnswer, type ScriptedServer, serveScript } from './scripted-server.ts'
import { failureOf, listenersOf, request, textOf, until } from './transport-client.ts'
import { listenWithoutAccepting } from './unaccepting-listener.ts'

overEachTransport(import.meta.file, ({ test, testOnLinux, openTransport }) => {
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  test('a port that refuses connections is unreachable', async () => {
    server = await serveScript(() => {})
    const { url } = server
    server.stop()
    const error = await failureOf(openTransport().send(request(url)))
    expect(error).toMatchObject({ kind: 'upstream_unreachable', status: 502 })
    expect(error).toHaveProperty('cause.code', 'ECONNREFUSED')
  })

  test('a host name that does not exist is unreachable', async () => {
    const error = await failureOf(openTransport().send(request('http://no-such-host.invalid/')))
    expect(error).toMatchObject({ kind: 'upstream_unreachable' })
    expect(String(error)).not.toContain('no-such-host')
  })

  test('an upstream that listens but does not speak TLS in time fails at the deadline', async () => {
    server = await serveScript(() => {})
    const transport = openTransport({ connectMs: () => 50 })
    const { signal } = new AbortController()
    const url = server.url.replace('http:', 'https:')
    const error = await failureOf(transport.send(request(url, { signal })))
    expect(error).toMatchObject({ kind: 'upstream_connect_timeout', status: 504 })
    expect(listenersOf(signal)).toBe(0)
    await until(() => server?.open() === 0)
  })

  test('a slow response has no connect deadline', async () => {
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      await Bun.sleep(2_100)
      await peer.write(okAnswer)
    })
    const transport = openTransport({ connectMs: () => 2_000 })
    expect(await textOf(await transport.send(request(server.url)))).toBe('ok')
  })

  test('a server that sends data before the request is not an HTTP server', async () => {
    server = await serveScript(async (peer) => peer.write('220 mail.example ESMTP\r\n'))
    const error = await failureOf(openTransport().send(request(server.url)))
    expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
  })

  testOnLinux('connecting has a deadline', async () => {
    const listener = await listenWithoutAccepting()
    const transport = openTransport({ connectMs: () => 50 })
    const { signal } = new AbortController()
    const url = `http://127.0.0.1:${listener.port}`
    try {
      const error = await failureOf(transport.send(request(url, { signal })))
      expect(error).toMatchObject({ kind: 'upstream_connect_timeout', status: 504 })
      expect(String(error)).not.toContain(String(listener.port))
      expect(listenersOf(signal)).toBe(0)
    } finally {
      listener.close()
    }
  })

  testOnLinux('an abort ends a connect that hangs', async () => {
    const listener = await listenWithoutAccepting()
    const controller = new AbortController()
    const reason = new Error('the client has left')
    try {
      const answer = openTransport().send(
        request(`http://127.0.0.1:${listener.port}`, { signal: controller.signal }),
      )
      controller.abort(reason)
      expect(await failureOf(answer)).toBe(reason)
      expect(listenersOf(controller.signal)).toBe(0)
    } finally {
      listener.close()
    }
  })

  test('a failed connection does not affect the next', async () => {
    const transport = openTransport()
    const refused = await serveScript(() => {})
    refused.stop()
    await failureOf(transport.send(request(refused.url)))
    server = await serveScript(answering(okAnswer))
    expect(await textOf(await transport.send(request(server.url)))).toBe('ok')
  })
})

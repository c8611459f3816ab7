import { afterEach, expect } from 'bun:test'
import { overEachTransport } from './over-each-transport.ts'
import {
  answering,
  chunk,
  chunkedHead,
  lastChunk,
  okAnswer,
  type Script,
  type ScriptedServer,
  serveScript,
} from './scripted-server.ts'
import { failureOf, listenersOf, request, textOf, until } from './transport-client.ts'

overEachTransport(import.meta.file, ({ test, openTransport }) => {
  const transport = openTransport()
  const reason = new Error('the client has left')
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  /** A request that can be aborted, to a server whose connections run this script. */
  async function abortable(script: Script) {
    server = await serveScript(script)
    const controller = new AbortController()
    const { peers, url } = server
    return { controller, peers, request: request(url, { signal: controller.signal }) }
  }

  test('an already aborted request does not connect', async () => {
    const { controller, peers, request } = await abortable(answering(okAnswer))
    controller.abort(reason)
    expect(await failureOf(transport.send(request))).toBe(reason)
    const { signal: _signal, ...other } = request
    await textOf(await transport.send({ ...other, signal: new AbortController().signal }))
    expect(peers).toHaveLength(1)
  })

  test('a request that is aborted in the tick that sent it fails with the reason', async () => {
    const { controller, request } = await abortable(answering(okAnswer))
    const answer = transport.send(request)
    controller.abort(reason)
    expect(await failureOf(answer)).toBe(reason)
    expect(listenersOf(controller.signal)).toBe(0)
  })

  test('a request aborted in the tick that sent it sends nothing', async () => {
    const { controller, peers, request } = await abortable(answering(okAnswer))
    const answer = transport.send(request)
    controller.abort(reason)
    await failureOf(answer)
    await until(() => peers.length === 1)
    await peers[0]?.closed
    expect(peers[0]?.bytesReceived).toBe(0)
  })

  test('a request aborted in the tick that sent it sends nothing over a used connection', async () => {
    const { controller, peers, request } = await abortable(answering(okAnswer))
    await textOf(await transport.send(request))
    const before = peers[0]?.bytesReceived
    const answer = transport.send(request)
    controller.abort(reason)
    expect(await failureOf(answer)).toBe(reason)
    await peers[0]?.closed
    expect(peers[0]?.bytesReceived).toBe(before ?? 0)
    expect(peers).toHaveLength(1)
  })

  test('an abort closes the connection to an upstream that never responds', async () => {
    const { controller, peers, request } = await abortable(() => {})
    const answer = transport.send(request)
    await until(() => peers.length === 1)
    await peers[0]?.nextRequest()
    controller.abort(reason)
    expect(await failureOf(answer)).toBe(reason)
    await peers[0]?.closed
    expect(listenersOf(controller.signal)).toBe(0)
  })

  test('an abort closes the connection during a read', async () => {
    const { controller, peers, request } = await abortable(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead + chunk('one'))
    })
    const chunks = (await transport.send(request)).chunks[Symbol.asyncIterator]()
    expect((await chunks.next()).done).toBe(false)
    const waiting = chunks.next()
    controller.abort(reason)
    expect(await failureOf(waiting)).toBe(reason)
    await peers[0]?.closed
    expect(listenersOf(controller.signal)).toBe(0)
  })

  test('an abort without a reader closes the connection, and the next read fails with the reason', async () => {
    const { controller, peers, request } = await abortable(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead + chunk('one') + chunk('two'))
    })
    const chunks = (await transport.send(request)).chunks[Symbol.asyncIterator]()
    controller.abort(reason)
    await peers[0]?.closed
    expect(await failureOf(chunks.next())).toBe(reason)
  })

  test('an abort closes a paused connection', async () => {
    const { controller, peers, request } = await abortable(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead)
      await peer.write(chunk('x'.repeat(20_000_000)))
    })
    await transport.send(request)
    await until(() => (peers[0]?.socket.writableLength ?? 0) > 0)
    controller.abort(reason)
    await peers[0]?.closed
  })

  test('a request is aborted while its body is still being sent', async () => {
    const { controller, peers, request } = await abortable((peer) => {
      peer.socket.pause()
    })
    const answer = transport.send({ ...request, body: 'x'.repeat(30_000_000) })
    await until(() => peers.length === 1)
    controller.abort(reason)
    expect(await failureOf(answer)).toBe(reason)
    peers[0]?.socket.resume()
    await peers[0]?.closed
  })

  test('an abort after the end does not affect the reused connection', async () => {
    const { controller, peers, request } = await abortable(answering(okAnswer))
    expect(await textOf(await transport.send(request))).toBe('ok')
    controller.abort(reason)
    const { signal: _signal, ...other } = request
    const signal = new AbortController().signal
    expect(await textOf(await transport.send({ ...other, signal }))).toBe('ok')
    expect(peers).toHaveLength(1)
  })

  test('a long-lived signal keeps no listeners of requests', async () => {
    const answers: Script[] = [
      answering(okAnswer),
      answering(chunkedHead + chunk('a') + lastChunk),
      (peer) => peer.end(),
      (peer) => peer.end(chunkedHead),
      (peer) => peer.write('nonsense'),
    ]
    const { controller, request } = await abortable((peer, index) =>
      answers[index % answers.length]?.(peer, index),
    )
    for (let count = 0; count < 20; count += 1) {
      await transport.send({ ...request, headers: { connection: 'x' } }).catch(() => {})
      await transport
        .send(request)
        .then(textOf)
        .catch(() => {})
    }
    expect(listenersOf(controller.signal)).toBe(0)
  })
})

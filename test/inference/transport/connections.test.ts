import { afterEach, expect } from 'bun:test'
import { closedPerSweepMax } from '#inference/transport/connection-pool.ts'
import { readTcpTable } from '#test/support/tcp-table.ts'
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
import { failureOf, request, textOf, until } from './transport-client.ts'

overEachTransport(import.meta.file, ({ test, testOnLinux, openTransport }) => {
  let server: ScriptedServer | undefined
  let transport = openTransport()

  afterEach(() => {
    transport.close()
    server?.stop()
  })

  async function serve(script: Script, options: Parameters<typeof openTransport>[0] = {}) {
    transport.close()
    transport = openTransport(options)
    server = await serveScript(script)
    const { url } = server
    return {
      ...server,
      ask: async (body = '{}') => textOf(await transport.send(request(url, { body }))),
    }
  }

  test('concurrent requests have separate connections', async () => {
    const { ask, peers } = await serve(answering(okAnswer, 3))
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['ok', 'ok', 'ok'])
    expect(peers).toHaveLength(3)
  })

  test('another port is another origin', async () => {
    const { ask, peers } = await serve(answering(okAnswer))
    const second = await serveScript(answering(okAnswer))
    await ask()
    expect(await textOf(await transport.send(request(second.url)))).toBe('ok')
    expect([peers.length, second.peers.length]).toEqual([1, 1])
    second.stop()
  })

  test('no more connections are pooled than configured', async () => {
    const { ask, peers, open } = await serve(answering(okAnswer, 5), { idleSocketsPerOriginMax: 2 })
    await Promise.all([ask(), ask(), ask(), ask(), ask()])
    expect(peers).toHaveLength(5)
    await until(() => open() === 2)
    await Promise.all([ask(), ask()])
    expect(peers).toHaveLength(5)
  })

  test('the most recently used connection is reused first', async () => {
    const { ask, peers } = await serve(answering(okAnswer, 3))
    await Promise.all([ask(), ask(), ask()])
    const before = peers.map(({ bytesReceived }) => bytesReceived)
    await ask()
    await ask()
    const busy = peers.filter(({ bytesReceived }, index) => bytesReceived !== before[index])
    expect(busy).toHaveLength(1)
  })

  test('idle connections are closed after the timeout', async () => {
    const count = 2 * closedPerSweepMax + 1
    const limits = { idleMs: 30, idleSocketsPerOriginMax: count }
    const { ask, peers } = await serve(answering(okAnswer, count), limits)
    await Promise.all(Array.from({ length: count }, () => ask()))
    await Promise.all(peers.map(({ closed }) => closed))
    expect(await ask()).toBe('ok')
    expect(peers).toHaveLength(count + 1)
  })

  testOnLinux(
    'the kernel asks on a silent connection whether the upstream still exists',
    async () => {
      const { ask, port } = await serve(answering(okAnswer))
      await ask()
      const connected = readTcpTable().filter(({ remotePort }) => remotePort === port)
      expect(connected).toMatchObject([{ state: '01', timer: '02' }])
    },
  )

  test('after the server closed the connection, a new one is opened', async () => {
    const { ask, peers } = await serve(
      answering('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'),
    )
    await ask()
    expect(await peers[0]?.closed).toBe('end')
    await ask()
    expect(peers).toHaveLength(2)
  })

  test('bytes on an idle connection close it', async () => {
    const { ask, peers } = await serve(answering(okAnswer))
    await ask()
    await peers[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong')
    await peers[0]?.closed
    expect(await ask()).toBe('ok')
    expect(peers).toHaveLength(2)
  })

  test('a pooled connection that the server closed is not used', async () => {
    const lines: string[] = []
    const log = { debug: (message: string) => lines.push(message), warn() {} }
    const { ask, peers, open } = await serve(answering(okAnswer), { log })
    await ask()
    peers[0]?.end()
    await until(() => open() === 0)
    expect(await ask()).toBe('ok')
    expect(peers).toHaveLength(2)
    expect(lines).toEqual([])
  })

  test('a complete body that is never read leaves the connection reusable', async () => {
    const body = 'x'.repeat(4_000)
    const text = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const { ask, peers, url } = await serve(answering(text), { bufferBytesMax: 1_000 })
    const unread = await transport.send(request(url))
    expect(await ask()).toBe(body)
    expect(await ask()).toBe(body)
    expect(peers).toHaveLength(1)
    expect(await textOf(unread)).toBe(body)
  })

  /** Responds once on the first connection, and breaks it at the second request. */
  function staleAfterFirst(breakOff: Script, bodies: string[]): Script {
    return async (peer, index) => {
      for (let count = 0; ; count += 1) {
        const { body } = await peer.nextRequest()
        bodies.push(body.toString())
        if (index === 0 && count === 1) return breakOff(peer, index)
        await peer.write(okAnswer)
      }
    }
  }

  for (const [name, breakOff] of Object.entries({
    closes: (peer) => peer.end(),
    resets: (peer) => peer.reset(),
  } satisfies Record<string, Script>)) {
    test(`a request on a kept connection is sent again if the server ${name} it`, async () => {
      const bodies: string[] = []
      const { ask, peers } = await serve(staleAfterFirst(breakOff, bodies))
      expect(await ask('first')).toBe('ok')
      expect(await ask('second')).toBe('ok')
      expect(peers).toHaveLength(2)
      expect(bodies).toEqual(['first', 'second', 'second'])
    })
  }

  test('a request is retried once only', async () => {
    const { ask, peers } = await serve(async (peer, index) => {
      await peer.nextRequest()
      if (index > 0) return peer.end()
      await peer.write(okAnswer)
      await peer.nextRequest()
      peer.end()
    })
    await ask()
    expect(await failureOf(ask())).toMatchObject({ kind: 'upstream_unreachable' })
    expect(peers).toHaveLength(2)
  })

  test('a request whose response has started is not retried', async () => {
    const bodies: string[] = []
    const { ask, peers } = await serve(staleAfterFirst((peer) => peer.end('HTTP/1.1 2'), bodies))
    await ask('first')
    expect(await failureOf(ask('second'))).toMatchObject({ kind: 'upstream_unreachable' })
    expect(peers).toHaveLength(1)
    expect(bodies).toEqual(['first', 'second'])
  })

  test('a reader that stops early closes the connection', async () => {
    const { peers, url } = await serve((peer) => peer.write(chunkedHead + chunk('endless')))
    const answer = await transport.send(request(url))
    for await (const _chunk of answer.chunks) break
    await peers[0]?.closed
    expect(await textOf(answer)).toBe('')
  })

  test('a reader that cancels during a read receives the end', async () => {
    const { peers, url } = await serve((peer) => peer.write(chunkedHead))
    const chunks = (await transport.send(request(url))).chunks[Symbol.asyncIterator]()
    const waiting = chunks.next()
    await chunks.return?.()
    expect(await waiting).toEqual({ done: true, value: undefined })
    await peers[0]?.closed
  })

  test('a reader that stops after the complete body leaves the connection reusable', async () => {
    const { ask, peers, url } = await serve(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead + chunk('a') + lastChunk)
      await peer.nextRequest()
      await peer.write(okAnswer)
    })
    const answer = await transport.send(request(url))
    for await (const _chunk of answer.chunks) break
    expect(await ask()).toBe('ok')
    expect(peers).toHaveLength(1)
  })

  test('closing closes pooled connections, and those returned later', async () => {
    const { ask, peers, open, url } = await serve(async (peer, index) => {
      await peer.nextRequest()
      await peer.write(index === 0 ? chunkedHead : okAnswer)
    })
    const streaming = await transport.send(request(url))
    await ask()
    transport.close()
    await peers[1]?.closed
    await peers[0]?.write(chunk('still read') + lastChunk)
    expect(await textOf(streaming)).toBe('still read')
    await until(() => open() === 0)
    expect(peers).toHaveLength(2)
  })

  test('a stale connection is logged without path and headers', async () => {
    const lines: unknown[] = []
    const log = {
      debug: (message: string, fields: unknown) => lines.push({ message, fields }),
      warn() {},
    }
    const { ask, port } = await serve(
      staleAfterFirst((peer) => peer.reset(), []),
      { log },
    )
    await ask()
    await ask()
    expect(lines).toEqual([
      { message: 'stale upstream connection', fields: { host: `127.0.0.1:${port}` } },
    ])
  })
})

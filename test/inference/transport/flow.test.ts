import { afterEach, expect } from 'bun:test'
import { viewOf } from '#inference/transport.ts'
import { overEachTransport } from './over-each-transport.ts'
import {
  chunk,
  chunkedHead,
  lastChunk,
  okAnswer,
  type Peer,
  type ScriptedServer,
  serveScript,
} from './scripted-server.ts'
import { failureOf, limits, listenersOf, request, textOf, until } from './transport-client.ts'

overEachTransport(import.meta.file, ({ test, openTransport, streamsAtOnce }) => {
  const transport = openTransport()
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  const mebibyte = 1_048_576

  test('a body of 30 MB arrives completely', async () => {
    const body = `${'x'.repeat(30_000_000)}é`
    let received = ''
    server = await serveScript(async (peer) => {
      received = (await peer.nextRequest()).body.toString()
      await peer.write(okAnswer)
    })
    expect(await textOf(await transport.send(request(server.url, { body })))).toBe('ok')
    expect(received === body).toBe(true)
  })

  /** Responds to the first bytes of a request, and reads no further. */
  function refusingEarly(finish: (peer: Peer) => void) {
    return async (peer: Peer) => {
      await new Promise((resolve) => peer.socket.once('data', resolve))
      peer.socket.pause()
      await peer.write('HTTP/1.1 413 Too Large\r\ncontent-length: 8\r\n\r\ntoo long')
      finish(peer)
    }
  }
  const goesOn = () => {}

  for (const [name, atOnce, onceHeard] of [
    ['closes', (peer: Peer) => peer.end(), goesOn],
    // A reset discards what was not read.
    ['resets', goesOn, (peer: Peer | undefined) => peer?.reset()],
    ['goes on', goesOn, goesOn],
  ] as const) {
    test(`an upstream that refuses a large body early and ${name} is heard`, async () => {
      server = await serveScript(refusingEarly(atOnce))
      const answer = await transport.send(request(server.url, { body: 'x'.repeat(30_000_000) }))
      expect(answer.status).toBe(413)
      onceHeard(server.peers[0])
      expect(await textOf(answer)).toBe('too long')
      // What is left of the request must not precede the next one.
      server.peers[0]?.socket.resume()
      await server.peers[0]?.closed
    })
  }

  test('a reader that does not read pauses the upstream, and memory stays flat', async () => {
    const bodyBytes = 300 * mebibyte
    const block = Buffer.alloc(mebibyte, 'x')
    let sentBytes = 0
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      await peer.write(`HTTP/1.1 200 OK\r\ncontent-length: ${bodyBytes}\r\n\r\n`)
      for (; sentBytes < bodyBytes; sentBytes += block.length) await peer.write(block)
    })
    const answer = await transport.send(request(server.url))
    const chunks = answer.chunks[Symbol.asyncIterator]()
    await chunks.next()
    const rssBefore = process.memoryUsage.rss()
    await untilStill(() => sentBytes)
    // What the kernel holds for both ends of the connection, and little more.
    expect(sentBytes).toBeLessThan(32 * mebibyte)
    expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(32 * mebibyte)
    let readBytes = 0
    for await (const { start, end } of { [Symbol.asyncIterator]: () => chunks }) {
      readBytes += end - start
    }
    expect(sentBytes).toBe(bodyBytes)
    expect(readBytes).toBeGreaterThan(bodyBytes - 2 * mebibyte)
  })

  test('queued bytes arrive completely and in order after a pause', async () => {
    const pieces = Array.from({ length: 60_000 }, (_, index) => `${index};`)
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      peer.end(chunkedHead + pieces.map(chunk).join('') + lastChunk)
    })
    const answer = await transport.send(request(server.url))
    await untilStill(() => server?.peers[0]?.socket.writableLength ?? 0)
    expect(await textOf(answer)).toBe(pieces.join(''))
  })

  test('a large read is split into pieces', async () => {
    const body = Array.from({ length: 600_000 }, (_, index) => `${index};`).join('')
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      peer.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    })
    const answer = await transport.send(request(server.url))
    const pieces: Uint8Array[] = []
    for await (const chunk of answer.chunks) {
      pieces.push(viewOf(chunk))
      // More is read meanwhile than one piece.
      await Bun.sleep(1)
    }
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(65_536)
    expect(Buffer.concat(pieces).toString() === body).toBe(true)
  })

  test('many small unread chunks are limited as well', async () => {
    let sent = 0
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead)
      for (; sent < 2_000; sent += 1) {
        await peer.write(chunk('x'))
        await Bun.sleep(0)
      }
      await peer.write(lastChunk)
    })
    const answer = await transport.send(request(server.url))
    await until(() => sent === 2_000)
    let longest = 0
    let total = 0
    for await (const { start, end } of answer.chunks) {
      longest = Math.max(longest, end - start)
      total += end - start
    }
    // A read that holds several chunks shows that the socket was paused meanwhile.
    expect(longest).toBeGreaterThan(100)
    expect(total).toBe(2_000)
  })

  test('many concurrent streams arrive completely, and leave nothing open', async () => {
    const pieces = Array.from({ length: 20 }, (_, index) => `event ${index};`)
    let waiting = 0
    const all = Promise.withResolvers<void>()
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead)
      waiting += 1
      if (waiting === streamsAtOnce) all.resolve()
      await all.promise
      for (const piece of pieces) await peer.write(chunk(piece))
      await peer.write(lastChunk)
    })
    const { url } = server
    const many = openTransport()
    const { signal } = new AbortController()
    const texts = await Promise.all(
      Array.from({ length: streamsAtOnce }, async () =>
        textOf(await many.send(request(url, { signal }))),
      ),
    )
    expect(new Set(texts)).toEqual(new Set([pieces.join('')]))
    expect(server.peers).toHaveLength(streamsAtOnce)
    await until(() => server?.open() === limits.idleSocketsPerOriginMax)
    many.close()
    await until(() => server?.open() === 0)
    expect(listenersOf(signal)).toBe(0)
  })

  test('a thousand truncated streams leave nothing open', async () => {
    server = await serveScript(async (peer) => {
      await peer.nextRequest()
      await peer.write(chunkedHead + chunk('begun'))
      peer.reset()
    })
    const { url } = server
    const { signal } = new AbortController()
    const kinds = await Promise.all(
      Array.from({ length: 1_000 }, async () => {
        const error = await failureOf(transport.send(request(url, { signal })).then(textOf))
        return error instanceof Error && 'kind' in error ? error.kind : error
      }),
    )
    expect(
      kinds.filter((kind) => !/^upstream_(truncated|unreachable)$/.test(String(kind))),
    ).toEqual([])
    await until(() => server?.open() === 0)
    expect(listenersOf(signal)).toBe(0)
  })

  /** Waits until a count has not moved for a while. */
  async function untilStill(count: () => number): Promise<void> {
    let last = -1
    while (count() !== last) {
      last = count()
      await Bun.sleep(200)
    }
  }
})

import { afterEach, expect } from 'bun:test'
import zlib from 'node:zlib'
import { AppError } from '#lib/errors.ts'
import { overEachTransport } from './over-each-transport.ts'
import { type Script, type ScriptedServer, serveScript } from './scripted-server.ts'
import { failureOf, latin1, readUntilFailure, request, textOf } from './transport-client.ts'

const compressors = {
  gzip: () => zlib.createGzip(),
  'X-GZIP ': () => zlib.createGzip(),
  deflate: () => zlib.createDeflate(),
  br: () => zlib.createBrotliCompress(),
  zstd: () => zlib.createZstdCompress(),
}

type Compressor = ReturnType<(typeof compressors)['gzip']>

/** The compressed bytes of the texts; each piece can be decompressed without the next one. */
async function compress(compressor: Compressor, texts: readonly string[]): Promise<Buffer[]> {
  const pieces: Buffer[] = []
  let written: Buffer[] = []
  compressor.on('data', (bytes: Buffer) => written.push(bytes))
  for (const text of texts) {
    compressor.write(text)
    await new Promise<void>((resolve) => compressor.flush(() => resolve()))
    pieces.push(Buffer.concat(written))
    written = []
  }
  const ended = new Promise((resolve) => compressor.once('end', resolve))
  compressor.end()
  await ended
  return [...pieces, Buffer.concat(written)]
}

const head = (encoding: string, status = 200) =>
  `HTTP/1.1 ${status} X\r\ncontent-encoding: ${encoding}\r\nconnection: close\r\n\r\n`

overEachTransport(import.meta.file, ({ test, openTransport }) => {
  const transport = openTransport()
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  async function serve(script: Script) {
    server = await serveScript(async (peer, index) => {
      await peer.nextRequest()
      await script(peer, index)
    })
    return server.url
  }

  for (const [encoding, create] of Object.entries(compressors)) {
    test(`each event of a ${encoding} body arrives before the next one is sent`, async () => {
      const texts = ['data: one\n\n', `data: ${'two '.repeat(50_000)}\n\n`, 'data: three\n\n']
      const pieces = await compress(create(), texts)
      const received = texts.map(() => Promise.withResolvers<void>())
      const url = await serve(async (peer) => {
        await peer.write(head(encoding))
        for (const [index, piece] of pieces.entries()) {
          await peer.write(piece)
          await received[index]?.promise
        }
        peer.end()
      })
      const { chunks } = await transport.send(request(url))
      let text = ''
      for (const [index] of texts.entries()) {
        const length = texts.slice(0, index + 1).join('').length
        while (text.length < length) text += latin1((await chunks.next()).value ?? undefined)
        received[index]?.resolve()
      }
      expect(await chunks.next()).toMatchObject({ done: true })
      expect(text).toBe(texts.join(''))
    })
  }

  test('an unknown encoding is refused at the head, and the connection closed', async () => {
    for (const encoding of ['compress', 'gzip, br']) {
      const url = await serve((peer) => peer.write(head(encoding)))
      const error = await failureOf(transport.send(request(url)))
      expect(error).toBeInstanceOf(AppError)
      expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
      expect(String(error)).toContain('content encoding')
      await server?.peers[0]?.closed
      server?.stop()
    }
  })

  test('the status of an error response with an unknown encoding remains', async () => {
    const url = await serve(async (peer) => {
      await peer.write(head('compress', 503))
      peer.end('x')
    })
    const answer = await transport.send(request(url))
    expect(answer.status).toBe(503)
    expect(await textOf(answer)).toBe('x')
  })

  test('the identity encoding changes nothing', async () => {
    const url = await serve(async (peer) => {
      await peer.write(head('Identity'))
      peer.end('x')
    })
    expect(await textOf(await transport.send(request(url)))).toBe('x')
  })

  test('invalid data is an invalid response', async () => {
    const url = await serve(async (peer) => {
      await peer.write(head('gzip'))
      peer.end('not compressed at all')
    })
    const { error } = await readUntilFailure(await transport.send(request(url)))
    expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
  })

  test('what arrived before the connection was lost is decompressed', async () => {
    const [first] = await compress(zlib.createGzip(), ['data: one\n\n', 'data: two\n\n'])
    const gone = Promise.withResolvers<void>()
    const url = await serve(async (peer) => {
      await peer.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 999\r\n\r\n')
      await peer.write(first ?? '')
      await gone.promise
      peer.end()
    })
    const answer = await transport.send(request(url))
    const read = await answer.chunks.next()
    gone.resolve()
    expect(latin1(read.value ?? undefined)).toBe('data: one\n\n')
    expect((await readUntilFailure(answer)).error).toMatchObject({ kind: 'upstream_truncated' })
  })

  test('a reader that cancels closes the connection', async () => {
    const [first] = await compress(zlib.createGzip(), ['data: one\n\n'])
    const url = await serve(async (peer) => {
      await peer.write(head('gzip'))
      await peer.write(first ?? '')
    })
    const answer = await transport.send(request(url))
    await answer.chunks.next()
    await answer.chunks.return()
    await server?.peers[0]?.closed
  })

  test('an abort ends a pending read with its reason', async () => {
    const abort = new AbortController()
    const url = await serve((peer) => peer.write(head('br')))
    const answer = await transport.send(request(url, { signal: abort.signal }))
    const read = failureOf(answer.chunks.next())
    const reason = new Error('enough')
    abort.abort(reason)
    expect(await read).toBe(reason)
  })
})

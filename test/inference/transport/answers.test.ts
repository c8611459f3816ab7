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
import { failureOf, latin1, limits, readUntilFailure, request, textOf } from './transport-client.ts'

overEachTransport(import.meta.file, ({ test, openTransport }) => {
  const transport = openTransport()
  let server: ScriptedServer | undefined

  afterEach(() => server?.stop())

  /** The answer of a server whose connections all run this script. */
  async function answerOf(script: Script) {
    server = await serveScript(async (peer, index) => {
      await peer.nextRequest()
      await script(peer, index)
    })
    return transport.send(request(server.url))
  }

  /** A reset discards what was not read. */
  const reset = () => server?.peers[0]?.reset()

  const textFrom = async (script: Script) => textOf(await answerOf(script))

  test('a response that arrives byte by byte is the same', async () => {
    const text = `HTTP/1.1 200 OK\r\nx-a: b\r\n${chunkedHead.slice(17)}${chunk('one')}${chunk('two')}${lastChunk}`
    const answer = await answerOf(async (peer) => {
      for (const byte of text) await peer.write(byte)
    })
    expect(answer.header('x-a')).toBe('b')
    expect(await textOf(answer)).toBe('onetwo')
  })

  test('100 Continue before the response is skipped', async () => {
    expect(await textFrom((peer) => peer.write(`HTTP/1.1 100 Continue\r\n\r\n${okAnswer}`))).toBe(
      'ok',
    )
  })

  test('one chunk of 10 MB arrives', async () => {
    const payload = 'x'.repeat(10_000_000)
    const text = await textFrom((peer) => peer.write(chunkedHead + chunk(payload) + lastChunk))
    expect(text).toHaveLength(payload.length)
  })

  test('a hundred thousand tiny chunks arrive in order', async () => {
    const pieces = Array.from({ length: 100_000 }, (_, index) => `${index},`)
    const text = await textFrom((peer) =>
      peer.write(chunkedHead + pieces.map(chunk).join('') + lastChunk),
    )
    expect(text).toBe(pieces.join(''))
  })

  test('a payload that looks like a chunk is not taken for one', async () => {
    const payload = chunk('hello')
    const framed = chunk(payload)
    const payloadAt = framed.indexOf(payload)
    const answer = await answerOf((peer) => peer.write(chunkedHead + framed.slice(0, payloadAt)))
    const first = answer.chunks.next()
    await server?.peers[0]?.write(payload)
    expect(latin1((await first).value)).toBe(payload)
    await server?.peers[0]?.write(`\r\n${chunk('more')}`)
    await server?.peers[0]?.write(lastChunk)
    expect(await textOf(answer)).toBe('more')
  })

  test('a body without a length ends with the connection', async () => {
    expect(await textFrom((peer) => peer.end('HTTP/1.1 200 OK\r\n\r\nuntil the end'))).toBe(
      'until the end',
    )
  })

  test('a body without a length that ends with a reset is truncated', async () => {
    const answer = await answerOf((peer) => peer.write('HTTP/1.1 200 OK\r\n\r\nnot the end'))
    expect(await readUntilFailure(answer, reset)).toMatchObject({
      text: 'not the end',
      error: { kind: 'upstream_truncated' },
    })
  })

  test('an HTTP/1.0 response is read, and its connection not reused', async () => {
    const text = 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'
    expect(await textFrom((peer) => peer.write(text))).toBe('ok')
    expect(await server?.peers[0]?.closed).toBe('end')
  })

  test('the response resolves before its body arrives', async () => {
    const answer = await answerOf((peer) => peer.write(chunkedHead))
    expect(answer.status).toBe(200)
    const first = answer.chunks[Symbol.asyncIterator]().next()
    await server?.peers[0]?.write(chunk('later'))
    expect(latin1((await first).value)).toBe('later')
  })

  test('a body longer than its length is truncated, and the connection not reused', async () => {
    expect(
      await textFrom((peer) => peer.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokay')),
    ).toBe('ok')
    expect(await server?.peers[0]?.closed).toBe('end')
  })

  const short = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello'
  const brokenOff: Record<string, string> = {
    'inside the size of a chunk': `${chunkedHead}${chunk('hello')}1`,
    'inside a chunk': `${chunkedHead}${chunk('hello')}5\r\n`,
    'after a chunk': `${chunkedHead}${chunk('hello')}`,
    'inside the last chunk': `${chunkedHead}${chunk('hello')}0\r\n`,
  }

  for (const [where, text] of Object.entries(brokenOff)) {
    test(`a stream that ends ${where} is truncated`, async () => {
      const { error } = await readUntilFailure(await answerOf((peer) => peer.end(text)))
      expect(error).toMatchObject({ kind: 'upstream_truncated' })
    })

    test(`a stream that is reset ${where} is truncated`, async () => {
      const answer = await answerOf((peer) => peer.write(text))
      const error = { kind: 'upstream_truncated' }
      expect(await readUntilFailure(answer, reset)).toMatchObject({ text: 'hello', error })
    })
  }

  test('a body shorter than its length is truncated', async () => {
    const { error } = await readUntilFailure(await answerOf((peer) => peer.end(short)))
    const truncated = { kind: 'upstream_truncated', status: 502, wireCode: 'server_error' }
    expect(error).toMatchObject(truncated)
  })

  test('received bytes of a body are delivered before its truncation', async () => {
    for (const text of [short, ...Object.values(brokenOff)]) {
      const { text: given } = await readUntilFailure(await answerOf((peer) => peer.end(text)))
      expect(given).toBe('hello')
      server?.stop()
    }
  })

  test('invalid framing ends a stream, after the bytes before it', async () => {
    const answer = await answerOf((peer) => peer.write(chunkedHead + chunk('hello')))
    const chunks = answer.chunks[Symbol.asyncIterator]()
    expect(latin1((await chunks.next()).value)).toBe('hello')
    const next = chunks.next()
    await server?.peers[0]?.write('zz\r\n')
    expect(await failureOf(next)).toMatchObject({ kind: 'upstream_invalid_answer' })
    expect(await chunks.next()).toEqual({ done: true, value: undefined })
    await server?.peers[0]?.closed
  })

  const invalid: Record<string, string> = {
    'something other than HTTP': '220 mail.example ESMTP\r\n',
    'a head that is too long': `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(limits.headerBytesMax / 6)}`,
    'a head of one endless line': `HTTP/1.1 200 ${'b'.repeat(limits.headerBytesMax)}`,
    'two lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok',
    'a length and chunks': `${chunkedHead.slice(0, -2)}content-length: 5\r\n\r\n`,
    'a chunk without a size': `${chunkedHead}\r\n`,
  }

  for (const [name, text] of Object.entries(invalid)) {
    test(`${name} is an invalid response, and closes the connection`, async () => {
      const error = await failureOf(answerOf((peer) => peer.write(text)).then(textOf))
      expect(error).toMatchObject({ kind: 'upstream_invalid_answer', status: 502 })
      await server?.peers[0]?.closed
    })
  }

  const unanswered: Record<string, Script> = {
    'closes without an answer': (peer) => peer.end(),
    'resets without an answer': (peer) => peer.reset(),
    'closes inside the head': (peer) => peer.end('HTTP/1.1 200 OK\r\ncontent-'),
    'closes after an interim answer': (peer) => peer.end('HTTP/1.1 100 Continue\r\n\r\n'),
  }

  for (const [name, script] of Object.entries(unanswered)) {
    test(`an upstream that ${name} is unreachable, and is called once`, async () => {
      const error = await failureOf(answerOf(script))
      expect(error).toMatchObject({ kind: 'upstream_unreachable', status: 502 })
      expect(server?.peers).toHaveLength(1)
    })
  }

  test('public error messages contain neither the address nor the key', async () => {
    const failures = await Promise.all(
      Object.values(unanswered).map(async (script) => {
        const one = await serveScript(async (peer, index) => {
          await peer.nextRequest()
          await script(peer, index)
        })
        const headers = { authorization: 'Bearer secret' }
        const error = await failureOf(transport.send(request(one.url, { headers })))
        one.stop()
        return String(error)
      }),
    )
    expect(new Set(failures)).toEqual(new Set(['AppError: The upstream could not be reached.']))
  })

  test('requests reuse one connection', async () => {
    server = await serveScript(answering(okAnswer))
    for (let index = 0; index < 20; index += 1) {
      expect(await textOf(await transport.send(request(server.url)))).toBe('ok')
    }
    expect(server.peers).toHaveLength(1)
  })
})

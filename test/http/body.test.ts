import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'

const limits = { requestBytesMax: 100_000, jsonDepthMax: 128, gapMs: 10_000, totalMs: 10_000 }
const asParsed = (value: unknown) => value

/** The result of `readJsonBody`: the value, or the error that it threw. */
type Outcome = { value: unknown } | { error: unknown }

let server: Bun.Server<undefined>
let arrived: PromiseWithResolvers<void>
let outcome: PromiseWithResolvers<Outcome>

const expectRequest = () => {
  arrived = Promise.withResolvers()
  outcome = Promise.withResolvers()
  return { arrived: arrived.promise, outcome: outcome.promise }
}

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const reading = (async () => readJsonBody(request, limits, { read: asParsed }))()
      arrived.resolve()
      try {
        outcome.resolve({ value: await reading })
        return new Response('read')
      } catch (error) {
        outcome.resolve({ error })
        return new Response('refused', { status: error instanceof AppError ? error.status : 500 })
      }
    },
  })
})

afterAll(() => server.stop(true))

function sendInChunks(chunks: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      for (const chunk of chunks) {
        controller.enqueue(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
        await Bun.sleep(1)
      }
      controller.close()
    },
  })
}

async function post(body?: string | Uint8Array | ReadableStream<Uint8Array>): Promise<Outcome> {
  const { outcome } = expectRequest()
  await (
    await fetch(server.url, { method: 'POST', ...(body === undefined ? {} : { body }) })
  ).text()
  return outcome
}

const read = async (...args: Parameters<typeof post>) => {
  const outcome = await post(...args)
  if ('error' in outcome) throw outcome.error
  return outcome.value
}

const refusal = async (...args: Parameters<typeof post>) => {
  const outcome = await post(...args)
  if (!('error' in outcome)) throw new Error('the body was read')
  return summarise(outcome.error)
}

function summarise(error: unknown): { kind: string; status: number; message: string } {
  if (!(error instanceof AppError)) throw error
  const { kind, status, message } = error
  return { kind, status, message }
}

/** Writes raw bytes and resolves with the first chunk of the response. */
async function sendRaw(bytes: string) {
  const answer = Promise.withResolvers<string>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: server.port ?? 0,
    socket: {
      data: (_, chunk) => answer.resolve(chunk.toString()),
      close: () => answer.resolve('closed without an answer'),
    },
  })
  socket.write(bytes)
  return { socket, answer: answer.promise }
}

const head = (...headers: string[]) =>
  `${['POST / HTTP/1.1', 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n`

describe('a JSON body', () => {
  test('is read with a content length', async () => {
    expect(await read('{"model":"demo","n":[1,2.5,true,null,"é"]}')).toEqual({
      model: 'demo',
      n: [1, 2.5, true, null, 'é'],
    })
  })

  test('is read in chunks, also when one splits a character', async () => {
    const bytes = new TextEncoder().encode('{"text":"žluťoučký 🐎"}')
    const chunks = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    expect(await read(sendInChunks(chunks))).toEqual({ text: 'žluťoučký 🐎' })
  })

  test('may begin with a byte order mark', async () => {
    expect(await read('\ufeff{"a":1}')).toEqual({ a: 1 })
  })

  test('with a key __proto__ changes no prototype', async () => {
    const value = await read('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(Object(value))).toEqual(['__proto__', 'constructor'])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('an invalid JSON body is malformed_json', () => {
  test('empty', async () => {
    const empty = {
      kind: 'malformed_json',
      status: 400,
      message: 'The request body is empty; send a JSON object.',
    }
    expect(await refusal()).toEqual(empty)
    expect(await refusal('')).toEqual(empty)
    expect(await refusal(sendInChunks([]))).toEqual(empty)
  })

  test('not UTF-8', async () => {
    expect(await refusal(new Uint8Array([0x22, 0xff, 0xfe, 0x22]))).toEqual({
      kind: 'malformed_json',
      status: 400,
      message: 'The request body is not valid UTF-8.',
    })
  })

  test.each([
    ['white space', '  \n '],
    ['a comma too many', '{"a":1,}'],
    ['an end that is missing', '{"a":{"b":1}'],
    ['an open string', '{"a":"x'],
    ['a string that ends in a backslash', '"\\'],
    ['two values', '{"a":1} {"b":2}'],
    ['single quotes', "{'a':1}"],
    ['form encoding', 'model=demo&input=hello'],
    ['a word', 'nope'],
    ['brackets that close only', ']]]}}}'],
  ])('%s', async (_, body) => {
    const { kind, status, message } = await refusal(body)
    expect({ kind, status }).toEqual({ kind: 'malformed_json', status: 400 })
    expect(message).toMatch(/^The request body is not valid JSON: .+\.$/)
  })

  test('and its message stays short', async () => {
    const { message } = await refusal('x'.repeat(50_000))
    expect(message.length).toBeLessThan(200)
  })
})

describe('a body over the limit is request_too_large', () => {
  const tooLarge = {
    kind: 'request_too_large',
    status: 413,
    message: 'The request body exceeds the limit of 100000 bytes.',
  }
  const ofLength = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`

  test('to the byte, in one piece and in chunks', async () => {
    expect(await read(ofLength(100_000))).toBeString()
    expect(await refusal(ofLength(100_001))).toEqual(tooLarge)
    expect(await read(sendInChunks(['"', 'x'.repeat(99_998), '"']))).toBeString()
    expect(await refusal(sendInChunks(['"', 'x'.repeat(99_999), '"']))).toEqual(tooLarge)
  })

  test('is refused before it is sent if its length is announced', async () => {
    const { outcome } = expectRequest()
    const { socket, answer } = await sendRaw(head('Content-Length: 100001'))
    expect(await answer).toStartWith('HTTP/1.1 413')
    expect(await outcome).toHaveProperty('error.kind', 'request_too_large')
    socket.terminate()
  })

  test('is refused while chunks still arrive', async () => {
    const { outcome } = expectRequest()
    const chunk = `${(60_000).toString(16)}\r\n${'x'.repeat(60_000)}\r\n`
    const { socket, answer } = await sendRaw(head('Transfer-Encoding: chunked') + chunk)
    socket.write(chunk)
    expect(await answer).toStartWith('HTTP/1.1 413')
    expect(await outcome).toHaveProperty('error.kind', 'request_too_large')
    socket.terminate()
  })
})

describe('the depth of a body', () => {
  const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`
  const tooDeep = {
    kind: 'invalid_request',
    status: 400,
    message: 'The request body is nested deeper than 128 levels.',
  }

  test('may reach the limit and not exceed it', async () => {
    expect(await read(nested(128))).toBeArray()
    expect(await refusal(`[${nested(128)}]`)).toEqual(tooDeep)
  })

  test.each([
    ['closed', '['.repeat(49_000) + ']'.repeat(49_000)],
    ['left open', '['.repeat(100_000)],
    ['objects', '{"a":'.repeat(19_000)],
  ])('is checked without a stack overflow in 100 kB of brackets, %s', async (_, body) => {
    expect(await refusal(body)).toEqual(tooDeep)
  })

  test('counts open brackets, not all brackets', async () => {
    expect(await read(`[${Array(5000).fill('[{}]').join(',')}]`)).toBeArrayOfSize(5000)
  })

  test.each([
    ['in short strings', `[${Array(200).fill('"[["').join(',')}]`],
    ['in a long string', `{"a":"${'[{'.repeat(200)}"}`],
    ['after an escaped quote', `{"a":"\\"${'['.repeat(200)}"}`],
    ['after an escaped backslash and quote', `{"a":"${'x'.repeat(100)}\\\\\\"${'['.repeat(200)}"}`],
    ['in JSON inside of JSON', JSON.stringify({ a: JSON.stringify({ b: '['.repeat(200) }) })],
  ])('does not count brackets %s', async (_, body) => {
    expect(await read(body)).toEqual(JSON.parse(body))
  })

  test.each([
    ['a short string', '"x"'],
    ['a long string', `"${'x'.repeat(200)}"`],
    ['a string that ends in escaped backslashes', `"${'x'.repeat(100)}\\\\\\\\"`],
    ['a string of escaped quotes', `"${'\\"'.repeat(100)}"`],
    ['an empty string', '""'],
  ])('counts brackets after %s', async (_, string) => {
    expect(await refusal(`[${string},${'['.repeat(128)}`)).toEqual(tooDeep)
  })

  test('ignores brackets in strings of any escapes and length', async () => {
    // A fixed seed, so that a failure comes again.
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((seed / 2_147_483_648) * below)
    }
    const signs = ['\\', '"', '[', '{', ']', '}', 'x', 'é', '\n']
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: random(90) }, () => signs[random(signs.length)]).join('')
      const levels = 127 + random(2)
      const body = `[${JSON.stringify(text)},${'['.repeat(levels)}${']'.repeat(levels)}]`
      const outcome = await post(body)
      expect('value' in outcome, body).toBe(levels === 127)
    }
  })
})

test('other work is served while a body of megabytes is parsed', async () => {
  const value = { input: 'x'.repeat(2_000_000) }
  let turns = 0
  let next = setImmediate(function count() {
    turns++
    next = setImmediate(count)
  })
  const body = JSON.stringify(value)
  const headers = { 'content-length': String(body.length) }
  const request = new Request('http://sluice/', { method: 'POST', headers, body })
  expect(
    await readJsonBody(request, { ...limits, requestBytesMax: 4_000_000 }, { read: asParsed }),
  ).toEqual(value)
  clearImmediate(next)
  expect(turns).toBeGreaterThan(1)
})

describe('a client that disconnects while sending is client_closed', () => {
  test.each([
    ['with an announced length', head('Content-Length: 1000')],
    ['in chunks', `${head('Transfer-Encoding: chunked')}5\r\n`],
  ])('%s', async (_, start) => {
    const { arrived, outcome } = expectRequest()
    const { socket } = await sendRaw(`${start}{"a":`)
    await arrived
    socket.terminate()
    expect(await outcome).toHaveProperty('error.kind', 'client_closed')
  })
})

import { afterEach, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { type FrameSource, type StreamPace, streamEvents } from '#http/event-stream.ts'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'

type Overrides = Partial<FrameSource<string> & StreamPace>

const open: { stop(force: boolean): Promise<void> }[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.stop(true)
})

/** A server whose responses stream what `source` yields. */
function serveStream(source: () => AsyncIterator<string>, overrides: Overrides = {}) {
  const seen = { abandoned: Promise.withResolvers<void>() }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    development: false,
    error: () => new Response(null, { status: 500 }),
    fetch: ({ signal }) =>
      streamEvents(
        {
          items: source(),
          renderer: { push: (item) => item },
          fail: (error) => `failed: ${error.kind}\n\n`,
          keepAlive: { open: () => 'opened\n\n', heartbeat: () => 'beat\n\n' },
          abandon: seen.abandoned.resolve,
          ...overrides,
        },
        {
          heartbeatMs: 60_000,
          readerStallMs: 60_000,
          closing: '',
          context: { signal },
          ...overrides,
        },
      ).catch((error: AppError) => new Response(`thrown: ${error.kind}`, { status: error.status })),
  })
  open.push(server)
  return { url: server.url.href, port: server.port ?? 0, seen }
}

/** Sends a request; the test decides when to read. */
async function askWithoutReading(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

/** A source that fails instead of yielding its first item, once released. */
function failing(error: AppError, after: Promise<void> = Promise.resolve()): AsyncIterator<string> {
  return { next: () => after.then(() => Promise.reject(error)) }
}

async function* list(...items: string[]) {
  yield* items
}

test('items arrive in order, whatever they contain', async () => {
  const items = ['a\n\n', '', 'ü€😀\n\n', 'z'.repeat(300_000)]
  const { url } = serveStream(() => list(...items))
  const answer = await fetch(url)
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(answer.headers.get('x-accel-buffering')).toBe('no')
  expect(await answer.text()).toBe(items.join(''))
})

test('a failure before the first item can still set the status', async () => {
  const { url } = serveStream(() => failing(new AppError('rate_limit_exceeded', 'slow down')))
  const answer = await fetch(url)
  expect(answer.status).toBe(429)
  expect(await answer.text()).toBe('thrown: rate_limit_exceeded')
})

test('a first item that takes longer than a heartbeat arrives in an open stream', async () => {
  const late = Promise.withResolvers<void>()
  const { url } = serveStream(
    async function* () {
      await late.promise
      yield 'late\n\n'
    },
    { heartbeatMs: 20 },
  )
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  late.resolve()
  expect(await answer.text()).toMatch(/^opened\n\n(beat\n\n)*late\n\n$/)
})

test('a failure after the stream opened is an error event', async () => {
  const late = Promise.withResolvers<void>()
  const { url } = serveStream(
    () => failing(new AppError('upstream_overloaded', 'full'), late.promise),
    { heartbeatMs: 20 },
  )
  const answer = await fetch(url)
  late.resolve()
  expect(await answer.text()).toMatch(/^opened\n\n(beat\n\n)*failed: upstream_overloaded\n\n$/)
})

test('a silent stream gets heartbeats, between items and never inside one', async () => {
  const beats = Promise.withResolvers<void>()
  let count = 0
  const { url } = serveStream(
    async function* () {
      yield 'first\n\n'
      await beats.promise
      yield 'last\n\n'
    },
    {
      heartbeatMs: 10,
      keepAlive: {
        open: () => '',
        heartbeat: () => {
          if (++count === 3) beats.resolve()
          return 'beat\n\n'
        },
      },
    },
  )
  expect(await (await fetch(url)).text()).toMatch(/^first\n\n(beat\n\n){3,}last\n\n$/)
})

test('a disconnected client ends the source at once, also while nothing is being written', async () => {
  const ended = Promise.withResolvers<void>()
  const forever = new Promise<never>(() => {})
  let reads = 0
  const items: AsyncIterator<string> = {
    next: () => (reads++ === 0 ? Promise.resolve({ done: false, value: 'one\n\n' }) : forever),
    return: async () => {
      ended.resolve()
      return { done: true, value: undefined }
    },
  }
  const { url, seen } = serveStream(() => items)
  const leave = new AbortController()
  const answer = await fetch(url, { signal: leave.signal })
  const reader = answer.body?.getReader()
  await reader?.read()
  leave.abort()
  await seen.abandoned.promise
  expect(reads).toBe(2)
})

test('a stalled reader pauses the source within bounded memory', async () => {
  const item = `${'x'.repeat(64 * 1024)}\n\n`
  const bytesHeldMax = 16 * 1024 * 1024
  let given = 0
  let blocked = Promise.withResolvers<void>()
  let watching: Timer | undefined
  const { port } = serveStream(async function* () {
    for (; given < 4_000; given++) {
      clearTimeout(watching)
      watching = setTimeout(() => blocked.resolve(), 300)
      yield item
    }
  })
  const socket = await askWithoutReading(port)
  await blocked.promise
  const givenWhileStalled = given
  expect(givenWhileStalled * item.length).toBeLessThan(bytesHeldMax)

  blocked = Promise.withResolvers<void>()
  let received = 0
  const all = new Promise<void>((resolve) => {
    socket.on('data', (bytes) => {
      received += bytes.length
      if (received >= 4_000 * item.length) resolve()
    })
  })
  socket.resume()
  await all
  // What frames the chunks was counted too, so the last item may still be on its way.
  await eventually('everything was given', () => given === 4_000)
  clearTimeout(watching)
  socket.destroy()
})

test('a reader that stalls for too long is disconnected', async () => {
  const item = `${'x'.repeat(64 * 1024)}\n\n`
  const ended = Promise.withResolvers<void>()
  const { port, seen } = serveStream(
    async function* () {
      try {
        for (;;) yield item
      } finally {
        ended.resolve()
      }
    },
    { readerStallMs: 50 },
  )
  const socket = await askWithoutReading(port)
  await seen.abandoned.promise
  await ended.promise
  const rest: Buffer[] = []
  socket.on('data', (bytes) => rest.push(Buffer.from(bytes)))
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
  expect(Buffer.concat(rest).toString('latin1').endsWith('\r\n0\r\n\r\n')).toBe(false)
})

import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { AppError } from '#lib/errors.ts'
import { createCheckedFetch, type Fetch, type OutboundPolicy } from '#outbound/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'

const fixtures = join(import.meta.dir, '../fixtures/tls')
const servers: { stop(force: boolean): unknown }[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

/** The tests' own authority is trusted; nothing else of a request is touched. */
const trusting: Fetch = async (url, init) => {
  const ca = await Bun.file(join(fixtures, 'authority.pem')).text()
  return fetch(url, { ...init, tls: { ...init.tls, ca } })
}

const loopback: OutboundPolicy = {
  hosts: ['*'],
  portsAllowed: [],
  private: true,
  timeoutMs: 60_000,
  bodyBytesMax: 1_000,
}
const toLoopback = async () => ['127.0.0.1']

function open(
  policy: Partial<OutboundPolicy> = {},
  resolve = toLoopback as (name: string) => Promise<string[]>,
) {
  return createCheckedFetch({ ...loopback, ...policy }, { fetch: trusting, resolve })
}

type Handle = (request: Request) => Response | Promise<Response>

async function serve(handle: Handle, certificate?: string): Promise<number> {
  const tls =
    certificate === undefined
      ? {}
      : {
          tls: {
            key: await Bun.file(join(fixtures, `${certificate}.key`)).text(),
            cert: await Bun.file(join(fixtures, `${certificate}.pem`)).text(),
          },
        }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    ...tls,
    fetch: handle,
  })
  servers.push(server)
  return server.port ?? 0
}

async function kindOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'nothing was thrown'
  } catch (error) {
    if (error instanceof AppError) return error.kind
    throw error
  }
}

test('the checked address is called, under the name of the URL', async () => {
  const port = await serve((request) => new Response(request.headers.get('host')), 'elsewhere')
  const answer = await open()(`https://elsewhere.example:${port}/x?y=1`)
  expect(await answer.text()).toBe(`elsewhere.example:${port}`)
})

test('the certificate must match the name, not the address', async () => {
  const port = await serve(() => new Response('no'), 'localhost')
  const work = open()(`https://elsewhere.example:${port}/`)
  expect(await kindOf(work)).toBe('upstream_unreachable')
})

test('DNS rebinding has no effect', async () => {
  const answers = [['93.184.216.34'], ['127.0.0.1']]
  const connectedTo: string[] = []
  const rebound = createCheckedFetch(
    { ...loopback, private: false },
    {
      resolve: async () => answers.shift() ?? [],
      async fetch(url, init) {
        const { host } = Object.fromEntries(new Headers(init.headers))
        connectedTo.push(`${url} as ${host}`)
        return new Response('public')
      },
    },
  )
  await rebound('https://rebound.example/x')
  expect(connectedTo).toEqual(['https://93.184.216.34:443/x as rebound.example'])
  expect(await kindOf(rebound('https://rebound.example/x'))).toBe('invalid_request')
  expect(connectedTo).toHaveLength(1)
})

test('a redirect fails, and its target is never called', async () => {
  let reached = 0
  const inner = await serve(() => {
    reached++
    return new Response('inside')
  })
  const outer = await serve(() => Response.redirect(`http://127.0.0.1:${inner}/`, 307))
  expect(await kindOf(open()(`http://one.example:${outer}/`))).toBe('upstream_invalid_answer')
  expect(reached).toBe(0)
})

test('the second address is tried if the first refuses the connection', async () => {
  const port = await serve((request) => request.text().then((text) => new Response(text)))
  const both = async () => ['127.0.0.2', '127.0.0.1']
  const answer = await open({}, both)(`http://one.example:${port}/`, {
    method: 'POST',
    body: 'hello',
  })
  expect(await answer.text()).toBe('hello')
})

test('a body beyond the limit fails, with or without content-length', async () => {
  const long = await serve(() => new Response('x'.repeat(1_001)))
  expect(await kindOf(open()(`http://one.example:${long}/`))).toBe('upstream_invalid_answer')
  const endless = await serve(() => {
    const pull = (controller: ReadableStreamDefaultController) =>
      controller.enqueue('x'.repeat(100))
    return new Response(new ReadableStream({ pull }))
  })
  const answer = await open()(`http://one.example:${endless}/`)
  expect(await kindOf(answer.text())).toBe('upstream_invalid_answer')
  const fits = await serve(() => new Response('x'.repeat(1_000)))
  expect(await (await open()(`http://one.example:${fits}/`)).text()).toHaveLength(1_000)
})

test('a compressed body is not decompressed', async () => {
  const packed = Bun.gzipSync(new TextEncoder().encode('x'.repeat(100_000)))
  const port = await serve(() => new Response(packed, { headers: { 'content-encoding': 'gzip' } }))
  const answer = await open()(`http://one.example:${port}/`)
  expect((await answer.bytes()).length).toBe(packed.length)
})

test('silence before and within the response ends at the time limit', async () => {
  const silent = await serve(() => new Promise(() => {}))
  const work = open({ timeoutMs: 50 })(`http://one.example:${silent}/`)
  expect(await kindOf(work)).toBe('upstream_total_timeout')
  const stalls = await serve(() => {
    const start = (controller: ReadableStreamDefaultController) => controller.enqueue('begun')
    return new Response(new ReadableStream({ start, pull: () => new Promise(() => {}) }))
  })
  const answer = await open({ timeoutMs: 500 })(`http://one.example:${stalls}/`)
  expect(await kindOf(answer.text())).toBe('upstream_total_timeout')
})

test('an abort ends the request with its reason', async () => {
  const caller = new AbortController()
  let gone = false
  const port = await serve((request) => {
    caller.abort(new AppError('client_closed', 'gone'))
    request.signal.addEventListener('abort', () => {
      gone = true
    })
    return new Promise(() => {})
  })
  const work = open()(`http://one.example:${port}/`, { signal: caller.signal })
  expect(await kindOf(work)).toBe('client_closed')
  await eventually('the server notices', () => gone)
})

test('a missing server is unreachable', async () => {
  expect(await kindOf(open()('http://one.example:1/'))).toBe('upstream_unreachable')
})

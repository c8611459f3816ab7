import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { endpointOf } from '#inference/transport/http1-request.ts'
import {
  connectsPerOriginMax,
  createPendingConnects,
} from '#inference/transport/pending-connects.ts'
import { endPassedTime, passTime } from '#test/support/passing-time.ts'
import { readTcpTable } from '#test/support/tcp-table.ts'
import { okAnswer, type ScriptedServer, serveScript } from './scripted-server.ts'
import { failureOf, openTransport, request, textOf, until } from './transport-client.ts'
import { listenWithoutAccepting } from './unaccepting-listener.ts'

let server: ScriptedServer | undefined
let transport: ReturnType<typeof openTransport>

beforeEach(() => {
  transport = openTransport('socket')
})
afterEach(() => {
  transport.close()
  server?.stop()
})

const connectTimeout = { kind: 'upstream_connect_timeout', status: 504 }

/** Connecting sockets to a port of loopback (Linux). */
function connectingTo(port: number): number {
  return readTcpTable().filter(({ remotePort, state }) => remotePort === port && state === '02')
    .length
}

describe.skipIf(process.platform !== 'linux')('an upstream that accepts no connections', () => {
  test('holds a bounded number of descriptors, however many requests give up', async () => {
    const listener = await listenWithoutAccepting()
    transport = openTransport('socket', { connectMs: () => 300 })
    const ask = () => failureOf(transport.send(request(`http://127.0.0.1:${listener.port}`)))
    try {
      let most = 0
      const asked: Promise<unknown>[] = []
      for (let round = 0; round < 60; round++) {
        asked.push(...Array.from({ length: 10 }, ask))
        await Bun.sleep(50)
        most = Math.max(most, connectingTo(listener.port))
      }
      for (const error of await Promise.all(asked)) expect(error).toMatchObject(connectTimeout)
      expect(most).toBeGreaterThan(0)
      expect(most).toBeLessThanOrEqual(3 * connectsPerOriginMax)
      server = await serveScript(async (peer) =>
        peer.nextRequest().then(() => peer.write(okAnswer)),
      )
      expect(await textOf(await transport.send(request(server.url)))).toBe('ok')
    } finally {
      listener.close()
    }
  })

  test('further requests fail at once while too many connects are pending', async () => {
    const listener = await listenWithoutAccepting()
    transport = openTransport('socket', { connectMs: () => 600_000 })
    const controller = new AbortController()
    const { signal } = controller
    const ask = () =>
      failureOf(transport.send(request(`http://127.0.0.1:${listener.port}`, { signal })))
    try {
      const pending = Array.from({ length: connectsPerOriginMax }, ask)
      expect(await ask()).toMatchObject(connectTimeout)
      expect(await ask()).toMatchObject(connectTimeout)
      const reason = new Error('the clients have left')
      controller.abort(reason)
      expect(new Set(await Promise.all(pending))).toEqual(new Set([reason]))
    } finally {
      listener.close()
    }
  })

  test('sockets that are given up after the upstream has stalled are closed', async () => {
    const listener = await listenWithoutAccepting()
    const url = `http://127.0.0.1:${listener.port}`
    try {
      transport = openTransport('socket', { connectMs: () => 1_500 })
      await failureOf(transport.send(request(url)))
      const before = connectingTo(listener.port)
      const controller = new AbortController()
      const { signal } = controller
      const answers = Array.from({ length: 20 }, () =>
        failureOf(transport.send(request(url, { signal }))),
      )
      await until(() => connectingTo(listener.port) === before + 20)
      controller.abort()
      await Promise.all(answers)
      // In a few turns of the loop: after 130 s the kernel itself would close them.
      for (let turn = 0; turn < 100 && connectingTo(listener.port) > before; turn++) {
        await Bun.sleep(1)
      }
      expect(connectingTo(listener.port)).toBeLessThanOrEqual(before)
    } finally {
      listener.close()
    }
  })

  test('is used again once it accepts connections', async () => {
    const listener = await listenWithoutAccepting()
    const { port } = listener
    transport = openTransport('socket', { connectMs: () => 1_500 })
    const ask = () => transport.send(request(`http://127.0.0.1:${port}`))
    // On a busy machine a connect may take too long again.
    const askOn = (): ReturnType<typeof ask> => ask().catch(askOn)
    await Promise.all(Array.from({ length: connectsPerOriginMax }, () => failureOf(ask())))
    listener.close()
    const recovered = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('ok') })
    try {
      const answers = await Promise.all(Array.from({ length: 100 }, askOn))
      expect(new Set(await Promise.all(answers.map(textOf)))).toEqual(new Set(['ok']))
    } finally {
      await recovered.stop(true)
    }
  })
})

test('connects that were given up count until their sockets are closed', async () => {
  jest.useFakeTimers()
  const { connect } = createPendingConnects()
  const endpoint = endpointOf('http://127.0.0.1:1/')
  let opened = 0
  const giveUp = async () => {
    const attempt = Promise.withResolvers<void>()
    const failed = connect(endpoint, attempt.promise, () => {
      opened++
      return new Promise(() => {})
    }).catch((error: unknown) => error)
    attempt.reject(new Error('given up'))
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    return { failed }
  }
  for (let count = 0; count < 2 * connectsPerOriginMax; count++) await giveUp()
  const { failed } = await giveUp()
  jest.useRealTimers()
  expect(opened).toBe(2 * connectsPerOriginMax)
  expect(await failed).toMatchObject(connectTimeout)
})

test('a burst of more connects than may be pending is served', async () => {
  server = await serveScript(async (peer) => {
    await peer.nextRequest()
    await peer.write(okAnswer)
  })
  const { url } = server
  const answers = Array.from({ length: 5 * connectsPerOriginMax }, async () =>
    textOf(await transport.send(request(url))),
  )
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['ok']))
})

test('connects whose SYN was lost do not hold back others, as long as the upstream accepts', async () => {
  jest.useFakeTimers()
  try {
    const pending = createPendingConnects()
    const endpoint = endpointOf('http://upstream.example')
    let opened = 0
    const connect = (outcome: Promise<void>) => {
      void pending.connect(endpoint, outcome, async () => {
        opened += 1
        await outcome
      })
    }
    const never = new Promise<void>(() => {})
    connect(Promise.resolve())
    for (let lost = 0; lost < connectsPerOriginMax; lost++) connect(never)
    connect(never)
    await settle()
    expect(opened).toBe(connectsPerOriginMax + 1)
    jest.advanceTimersByTime(100)
    await settle()
    expect(opened).toBe(connectsPerOriginMax + 2)
  } finally {
    jest.useRealTimers()
  }
})

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}

test('refused connects give their turn to the next', async () => {
  server = await serveScript(() => {})
  const { url } = server
  server.stop()
  const errors = await Promise.all(
    Array.from({ length: 3 * connectsPerOriginMax }, () => failureOf(transport.send(request(url)))),
  )
  for (const error of errors) expect(error).toMatchObject({ kind: 'upstream_unreachable' })
})

test('requests after a suspension of the process wait until its connects are noticed', async () => {
  const recovered = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('ok') })
  const ask = () => transport.send(request(`http://127.0.0.1:${recovered.port}`))
  try {
    const asked = Array.from({ length: connectsPerOriginMax }, ask)
    passTime(10_000)
    asked.push(...Array.from({ length: 50 }, ask))
    const answers = await Promise.all(asked)
    expect(new Set(await Promise.all(answers.map(textOf)))).toEqual(new Set(['ok']))
  } finally {
    endPassedTime()
    await recovered.stop(true)
  }
})

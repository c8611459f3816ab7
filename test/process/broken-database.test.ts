import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { signToken, startGatewayProcess, stopProcesses } from '#test/support/process.ts'
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts'

let place: TestPlace | undefined
let proxy: TcpProxy | undefined

afterEach(async () => {
  await stopProcesses()
  await proxy?.stop()
  await place?.remove()
})

/** Requests that need the database, with a body where they have one. */
const requests: readonly (readonly [string, object?])[] = [
  ['/v1/collections'],
  ['/v1/collections', { name: 'another' }],
  ['/v1/collections/known/search', { query: 'anything' }],
  ['/v1/vector_stores'],
  ['/v1/vector_stores', { name: 'store' }],
  ['/v1/embeddings/reindex'],
  ['/v1/files/children'],
  ['/v1/files/search?query=anything'],
  ['/v1/files/trash'],
  ['/v1/folders', { name: 'folder' }],
  ['/v1/uploads', { filename: 'a', purpose: 'user_data', bytes: 1, mime_type: 'text/plain' }],
  ['/v1/principals?q=any'],
  ['/v1/agents', { name: 'agent', model: 'demo' }],
  ['/v1/api-keys'],
  ['/v1/api-keys', { name: 'key' }],
  ['/v1/groups'],
  ['/v1/users'],
  ['/v1/usage'],
  ['/v1/usage/records'],
  ['/v1/audit-log'],
  ['/v1/config/history'],
  ['/v1/conversations', {}],
  ['/v1/responses/resp_00000000000000000000000000'],
  ['/v1/model-installer/downloads'],
]

test.skipIf(serverUrl === undefined)(
  'a request that needs an unreachable database is answered with 503, on every endpoint',
  async () => {
    const own = await createTestPlace()
    const url = new URL(own.databaseUrl ?? '')
    const through = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
    ;[place, proxy] = [own, through]
    url.port = String(through.port)
    const gateway = await startGatewayProcess({
      dataFolder: own.dataFolder,
      environment: { DATABASE_URL: String(url) },
    })
    const headers = {
      authorization: `Bearer ${await signToken(['admins'])}`,
      'content-type': 'application/json',
    }
    const send = async (path: string, body?: object) => {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const answer = await gateway.request(path, { ...init, headers })
      return { status: answer.status, code: Object(await answer.json()).error?.code }
    }
    expect((await send('/v1/collections', { name: 'known' })).status).toBe(201)
    await through.goDown()
    for (const [path, body] of requests) {
      const answer = { path, ...(await send(path, body)) }
      expect(answer).toEqual({ path, status: 503, code: 'service_unavailable' })
    }
    await through.comeUp()
    await eventually('the database is used again', async () => {
      return (await send('/v1/collections')).status === 200
    })
  },
)

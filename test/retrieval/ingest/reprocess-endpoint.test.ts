import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { mountEndpoints } from '#api/mount.ts'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { loadConfig } from '#config/load.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { newId } from '#lib/id.ts'
import { ingestEndpoints } from '#retrieval/ingest/endpoints.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  type FileGateway,
  outcome,
  type Person,
  principalOf,
  startFileGateway,
} from '#test/support/file-gateway.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { quietLog, quietObserver } from '#test/support/quiet-log.ts'
import { type IngestHarness, startIngestHarness } from './ingest-harness.ts'

const secret = 'the secret of a test of routes alone'
const ann: Person = { subject: 'ann', groups: ['users'] }
const bob: Person = { subject: 'bob', groups: ['users'] }

let database: TestDatabase
let harness: IngestHarness
let gateway: FileGateway
let stop: () => Promise<void>
let url: string

beforeAll(async () => {
  database = await openTestDatabase()
  harness = await startIngestHarness(database, database.place.dataFolder, {
    owner: principalOf(ann),
  })
  gateway = await startFileGateway(database)
  const config = loadConfig({ JWT_SECRET: secret, PORT: '0' })
  const now = () => new Date()
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log: quietLog,
    now,
    fetch,
  })
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(
      requestLifecycle({
        observer: quietObserver,
        newRequestId: () => newId('req_'),
        draining: () => false,
      }),
    )
    .use(
      mountEndpoints(ingestEndpoints({ files: harness.files, ingest: harness.ingest }), {
        auth,
        config,
      }),
    )
    .listen({ hostname: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${app.server?.port}`
  stop = async () => {
    await app.stop(true)
    await auth.close()
  }
})
afterAll(async () => {
  await stop()
  await harness.close()
  await gateway.stop()
  await database.close()
})

async function reprocess({ subject, groups }: Person, id: string) {
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { sub: subject, groups: [...groups], iat: nowS, exp: nowS + 3_600 }
  const answer = await fetch(`${url}/v1/files/${id}/reprocess`, {
    method: 'POST',
    headers: { authorization: `Bearer ${signWithSecret(secret, { claims })}` },
  })
  return { status: answer.status, body: Object(await answer.json()), headers: answer.headers }
}

test('reprocessing needs the role editor', async () => {
  const id = await harness.upload('a.txt', 'A text to be read twice.')
  await harness.settled()
  expect(outcome(await reprocess(bob, id))).toBe('404 not_found')
  await gateway.share(
    ann,
    `/v1/files/${id}`,
    { type: 'user', id: principalOf(bob).userId },
    'viewer',
  )
  expect(outcome(await reprocess(bob, id))).toBe('403 permission_denied')
  expect(outcome(await reprocess(ann, 'nonsense'))).toBe('404 not_found')
  const accepted = await reprocess(ann, id)
  expect(accepted.status).toBe(202)
  expect(accepted.body).toMatchObject({ id, object: 'file', filename: 'a.txt' })
  expect(accepted.headers.get('etag')).not.toBeNull()
  await harness.settled()
  expect(await harness.state(id)).toMatchObject({ state: 'done' })
})

test('reprocessing a file in progress is a conflict', async () => {
  const embedder = harness.embedders.get('local-hash')
  const open = Promise.withResolvers<void>()
  harness.embedders.set('local-hash', {
    model: 'local-hash',
    async embed(texts, options) {
      await open.promise
      if (embedder === undefined) throw new Error('no embedder')
      return embedder.embed(texts, options)
    },
  })
  const id = await harness.upload('b.txt', 'A text that takes its time.')
  expect(outcome(await reprocess(ann, id))).toBe('409 already_processing')
  open.resolve()
  await harness.settled()
  expect(await harness.state(id)).toMatchObject({ state: 'done', attempts: 1 })
})

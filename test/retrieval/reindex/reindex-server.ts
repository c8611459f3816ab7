import { Elysia } from 'elysia'
import { mountEndpoints } from '#api/mount.ts'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { loadConfig } from '#config/load.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { newId } from '#lib/id.ts'
import { reindexEndpoints } from '#retrieval/reindex/endpoints.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { quietLog, quietObserver } from '#test/support/quiet-log.ts'
import type { ReindexHarness } from './reindex-harness.ts'

/** The endpoints of reindexes on a real port. */
export type ReindexServer = {
  /** As an administrator by default. */
  send(path: string, options?: SendOptions): Promise<Response>
  stop(): Promise<void>
}

type SendOptions = {
  method?: string
  json?: unknown
  headers?: Record<string, string>
  groups?: readonly string[]
}

const secret = 'one more secret that only the tests know'

export async function startReindexServer(harness: ReindexHarness): Promise<ReindexServer> {
  const config = loadConfig({ JWT_SECRET: secret, PORT: '0' })
  const clock = { now: () => new Date() }
  const { database, reindexes } = harness
  const auth = await createAuth({
    audit: createAudit({ database, now: clock.now }),
    config,
    database,
    log: quietLog,
    now: clock.now,
    fetch,
  })
  const endpoints = reindexEndpoints({ reindexes, config })
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(
      requestLifecycle({
        observer: quietObserver,
        newRequestId: () => newId('req_'),
        draining: () => false,
      }),
    )
    .use(mountEndpoints(endpoints, { auth, config }))
    .listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}/v1/embeddings/reindex`
  return {
    send: (path, { method, json, headers = {}, groups = ['admins'] } = {}) =>
      fetch(url + path, {
        method: method ?? (json === undefined ? 'GET' : 'POST'),
        headers: { ...headers, authorization: `Bearer ${tokenOf(groups)}` },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      }),
    async stop() {
      await app.stop(true)
      await auth.close()
    },
  }
}

function tokenOf(groups: readonly string[]): string {
  const nowS = Math.floor(Date.now() / 1_000)
  return signWithSecret(secret, { claims: { sub: 'root', groups, iat: nowS, exp: nowS + 3_600 } })
}

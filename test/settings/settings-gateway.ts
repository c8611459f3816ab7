import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { createEmbedders } from '#embedding/embedder.ts'
import { createReceiver } from '#files/content/receive.ts'
import { uploadEndpoints } from '#files/content/upload-endpoints.ts'
import { fileShareEndpoints } from '#files/shares/endpoints.ts'
import { createShares } from '#files/shares/shares.ts'
import { createFiles, type Files } from '#files/tree.ts'
import { createInference } from '#inference/inference.ts'
import { createRouter } from '#inference/routing/router.ts'
import { createCatalogue } from '#models/catalogue.ts'
import { createModelAccess } from '#models/model-access.ts'
import { createModelResolver } from '#models/model-resolver.ts'
import { createModelNames } from '#models/names.ts'
import { configuredUpstreams } from '#models/upstreams.ts'
import { rerankEndpoints } from '#rerank/endpoints.ts'
import { createRerankers } from '#rerank/reranker.ts'
import { settingsEndpoints } from '#settings/endpoints.ts'
import { createSettings, type Settings } from '#settings/settings.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { createLog } from '#telemetry/log.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { createTestApp } from '#test/support/endpoints.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { openTransport } from '#test/support/transport.ts'

/** One process with the settings and some endpoints that use them, on a real port. */
export type SettingsGateway = {
  readonly settings: Settings
  readonly files: Files
  readonly config: Config
  readonly logLines: readonly string[]
  /** As the administrator `dora` by default. */
  send(path: string, options?: SendOptions): Promise<ApiResponse>
  /** As an ordinary user. */
  read(): Promise<ApiResponse>
  patch(json: unknown, options?: SendOptions): Promise<ApiResponse>
  /** Uploads a file and returns its id. */
  upload(user: Person, name: string): Promise<string>
  /** Advances the clock. */
  pass(ms: number): void
  stop(): Promise<void>
}

export type Person = { readonly subject: string; readonly groups: readonly string[] }
type SendOptions = {
  as?: Person
  method?: string
  /** A string is sent verbatim. */
  json?: unknown
  headers?: Record<string, string>
}

export type ApiResponse = {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly etag: string
  readonly text: string
}

export const dora: Person = { subject: 'dora', groups: ['admins'] }
export const ann: Person = { subject: 'ann', groups: ['users'] }

const secret = 'a secret that only the tests know, 32+'
/** Only used by tests that start an upstream. */
const unusedUpstream = 'http://127.0.0.1:1/v1'
export const upstreamKey = 'sk-upstream-secret'

/** The configuration file of each process. */
const models = (url: string) => `
[[upstream]]
name = "gpu"
url = "${url}"
key = "${upstreamKey}"
models = ["writer"]
[[model]]
name = "sorter"
mode = "rerank"
aliases = ["sorter-alias"]
upstreams = ["gpu"]
[[model]]
name = "vectors"
mode = "embed"
upstreams = ["gpu"]
`

export async function startSettingsGateway(
  database: Database,
  options: { toml?: string; environment?: Record<string, string>; upstreamUrl?: string } = {},
): Promise<SettingsGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-settings-'))
  const file = join(folder, 'sluice.toml')
  writeFileSync(file, `${options.toml ?? ''}\n${models(options.upstreamUrl ?? unusedUpstream)}`)
  const environment = { SLUICE_CONFIG: file, JWT_SECRET: secret, ...options.environment }
  const config = loadConfig(environment)
  const logLines: string[] = []
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const log = createLog({
    level: 'debug',
    format: 'json',
    now,
    write: (line) => logLines.push(line),
  })
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log,
    now,
    fetch,
  })
  const settings = await createSettings({ config, database, log, now })
  const transport = openTransport()
  const upstreams = configuredUpstreams(config)
  const names = createModelNames(config.compat)
  const access = createModelAccess(names, () => settings.current().models.access)
  const catalogue = createCatalogue({
    config,
    access,
    upstreams,
    adapters: adaptersWithoutModels,
    transport,
    log,
    now,
  })
  const inference = createInference({
    adapters: adaptersWithoutModels,
    transport,
    limits: config.limits,
    deadlines: config.deadlines,
    retry: config.retry,
    router: createRouter(),
    onSettled() {},
  })
  const noAgents = { find: async () => undefined, list: async () => [] }
  const modelResolver = createModelResolver({ catalogue, access, agents: noAgents, names, log })
  const rerankers = createRerankers({ inference, modelResolver })
  const storage = await createDiskStorage({ folder: join(folder, 'files'), now })
  const hooks = { async changed() {}, async joinCollections() {} }
  const files = createFiles({ database, storage, settings, limits: config.files, hooks, now })
  const shares = createShares({ database, now })
  const embedders = createEmbedders({ inference, modelResolver, models: () => config.model })
  const serviceDesk = { async prepare() {}, async apply() {} }
  const endpoints = [
    ...settingsEndpoints({
      settings,
      embedders,
      rerankers,
      files,
      modelResolver,
      serviceDesk,
      audit: createAudit({ database, now }),
    }),
    ...uploadEndpoints({ ...createReceiver({ files, storage, settings, config }), files }),
    ...fileShareEndpoints({ shares, settings }),
    ...rerankEndpoints({
      rerankers,
      limits: { rateLimits: () => null },
      settings() {
        const { reranker_model: rerankModel, rerank_top_n: rerankTopN } = settings.current()
        return { rerankModel, rerankTopN }
      },
      config,
    }),
  ]
  const app = createTestApp(endpoints, { auth, config, log }).listen({
    hostname: '127.0.0.1',
    port: 0,
  })
  const send: SettingsGateway['send'] = (path, options) =>
    sendTo(`http://127.0.0.1:${app.server?.port}${path}`, { now, ...options })
  return {
    settings,
    files,
    config,
    logLines,
    send,
    read: () => send('/v1/config', { as: ann }),
    patch: (json, options) => send('/v1/config', { method: 'PATCH', json, ...options }),
    async upload(user, name) {
      const { body, text } = await send(`/v1/files?name=${name}`, {
        as: user,
        method: 'POST',
        json: 'x',
      })
      if (typeof body['id'] !== 'string') throw new Error(text)
      return body['id']
    },
    pass(ms) {
      offsetMs += ms
    },
    async stop() {
      await app.stop(true)
      catalogue.close()
      await settings.close()
      await auth.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function sendTo(
  url: string,
  { as = dora, method, json, headers, now }: SendOptions & { now: () => Date },
): Promise<ApiResponse> {
  const nowS = Math.floor(now().getTime() / 1_000)
  const claims = { sub: as.subject, groups: [...as.groups], iat: nowS, exp: nowS + 3_600 }
  const response = await fetch(url, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${signWithSecret(secret, { claims })}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    body: Object(JSON.parse(text)),
    etag: response.headers.get('etag') ?? '',
    text,
  }
}

/** `200`, or `422 unknown_field files.min_bytes`. */
export function outcome({ status, body }: ApiResponse): string {
  if (status < 300) return String(status)
  const { code, param } = Object(body['error'])
  return param === null ? `${status} ${code}` : `${status} ${code} ${param}`
}

/** The value at a path such as `files.max_bytes`. */
export function valueAt(body: object, key: string): unknown {
  return key.split('.').reduce((parent: unknown, step) => Object(parent)[step], body)
}

/** A body with a value at a path such as `files.max_bytes`. */
export function bodyWith(key: string, value: unknown): object {
  return key.split('.').reduceRight((inner: unknown, step) => ({ [step]: inner }), value) as object
}

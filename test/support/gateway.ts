import { Value } from '@sinclair/typebox/value'
import { SignJWT } from 'jose'
import OpenAI from 'openai'
import { buildApp } from '#app.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { hookEntry } from '#hooks/config.ts'
import { createHostedTools } from '#hosted-tools/hosted-tools.ts'
import { beginWork, type StartedServices, startServices } from '#modules.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { createFileSearch } from '#retrieval/file-search/file-search.ts'
import type { Search } from '#retrieval/search/search.ts'
import { createLog } from '#telemetry/log.ts'
import { checkedFetch } from './checked-fetch.ts'
import { openTestDatabase } from './database.ts'
import { dataFolder } from './temporary-folders.ts'
import { modelLoadMs } from './time-limits.ts'

const jwtSecret = 'a-secret-for-tests-of-at-least-32-characters'

export type Gateway = {
  /** `http://127.0.0.1:<port>` */
  url: string
  port: number
  deps: StartedServices
  /** Every log line so far. */
  logLines: readonly string[]
  token(groups?: readonly string[], subject?: string): Promise<string>
  /**
   * A request with a token of group `users`, unless other headers are given; the response is
   * validated by `checkedFetch`.
   */
  request(path: string, init?: RequestInit): Promise<Response>
  post(path: string, body: unknown): Promise<Response>
  openai(): Promise<OpenAI>
  stop(): Promise<void>
}

export type GatewayOptions = {
  upstream?: Partial<Config['upstream'][number]>[]
  model?: Partial<Config['model'][number]>[]
  deadlines?: Partial<Config['deadlines']>
  health?: Partial<Config['health']>
  retry?: Partial<Config['retry']>
  stream?: Partial<Config['stream']>
  limits?: Partial<Config['limits']>
  budgets?: Partial<Config['budgets']>
  prices?: Config['prices']
  queue?: Partial<Config['queue']>
  responses?: Partial<Config['responses']>
  batches?: Partial<Config['batches']>
  webhooks?: Partial<Config['webhooks']>
  websocket?: Partial<Config['websocket']>
  tokens?: Partial<Config['tokens']>
  compat?: Partial<Config['compat']>
  unsupportedTools?: Config['unsupportedTools']
  mcpServer?: Config['mcpServer']
  appGateway?: Partial<Config['appGateway']>
  hook?: Partial<Config['hook'][number]>[]
  llama?: Partial<Config['llama']>
  flite?: Partial<Config['flite']>
  installer?: Partial<Config['installer']>
  retrieval?: Partial<Config['retrieval']>
  files?: Partial<Config['files']>
  speech?: Partial<Config['speech']>
  docs?: Partial<Config['docs']>
  console?: Partial<Config['console']>
  usage?: Partial<Config['usage']>
  metrics?: Partial<Config['metrics']>
  /** Groups in addition to the predefined ones, by name. */
  groups?: Config['groups']
  engine?: Partial<Config['engine'][number]>[]
  environment?: Record<string, string>
  /** A shared database, which is not closed. */
  database?: Database
  /** A replacement for the search of passages. */
  search?: Search
}

/** The whole product in this process, on a free port, with its own database. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const logLines: string[] = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    write: (line) => logLines.push(line),
    now: () => new Date(),
  })
  const config = configOf(options)
  const database =
    options.database === undefined
      ? await openTestDatabase()
      : { ...options.database, close: async () => {} }
  let draining = false
  const created = await startServices(config, { log, draining: () => draining, database })
  const deps = options.search === undefined ? created : searchingBy(options.search, created)
  await beginWork(deps)
  const app = buildApp(deps).listen({ hostname: '127.0.0.1', port: 0, development: false })
  const port = app.server?.port ?? 0
  const url = `http://127.0.0.1:${port}`

  const token = (groups: readonly string[] = ['users'], subject = 'tester') =>
    new SignJWT({ groups: [...groups] })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(subject)
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(jwtSecret))
  const request = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    if (!headers.has('authorization') && !headers.has('x-api-key')) {
      headers.set('authorization', `Bearer ${await token()}`)
    }
    return checkedFetch(url + path, { ...init, headers })
  }
  return {
    url,
    port,
    deps,
    logLines,
    token,
    request,
    post: (path, body) =>
      request(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    openai: async () =>
      new OpenAI({
        baseURL: `${url}/v1`,
        apiKey: await token(),
        maxRetries: 0,
        fetch: checkedFetch,
      }),
    async stop() {
      draining = true
      await app.stop(true)
      await deps.close()
    },
  }
}

function searchingBy(search: Search, deps: StartedServices): StartedServices {
  const { config, log } = deps
  const fileSearch = createFileSearch({ search, log })
  const hostedTools = createHostedTools({ config, fetch, resolve: resolveHost, fileSearch })
  return { ...deps, hostedTools }
}

const hourMs = 3_600_000

/** Models have the priority of the tests. */
const common = { JWT_SECRET: jwtSecret, PORT: '0', SLUICE_COMPUTE_NICE: '0' }

function configOf(options: GatewayOptions): Config {
  const config = loadConfig({ ...common, SLUICE_DATA: dataFolder(), ...options.environment })
  const [upstreamDefaults] = loadConfig({ SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1/v1' }).upstream
  const [engineDefaults] = loadConfig({ SLUICE_STT_ENGINE: 'demo' }).engine
  return {
    ...config,
    upstream: (options.upstream ?? config.upstream).map((entry, at) => ({
      ...upstreamDefaults,
      name: `upstream-${at}`,
      api: 'chat',
      headers: {},
      weight: 1,
      ...entry,
    })) as Config['upstream'],
    model: (options.model ?? []).map((entry) => ({
      name: 'model',
      mode: 'generate',
      routing: 'ordered',
      upstreams: entry.targets === undefined ? ['upstream-0'] : [],
      targets: [],
      fallbacks: [],
      aliases: [],
      capabilities: [],
      ...entry,
    })) as Config['model'],
    // A test that lasts longer than the interval would find a request that it did not cause.
    models: { ...config.models, refreshMs: hourMs },
    deadlines: { ...config.deadlines, ...options.deadlines },
    health: { ...config.health, ...options.health },
    retry: { ...config.retry, backoffMs: 1, ...options.retry },
    stream: { ...config.stream, ...options.stream },
    limits: { ...config.limits, ...options.limits },
    budgets: { ...config.budgets, ...options.budgets },
    prices: options.prices ?? config.prices,
    queue: { ...config.queue, ...options.queue },
    responses: { ...config.responses, ...options.responses },
    batches: { ...config.batches, ...options.batches },
    webhooks: { ...config.webhooks, ...options.webhooks },
    websocket: { ...config.websocket, ...options.websocket },
    tokens: { ...config.tokens, ...options.tokens },
    compat: { ...config.compat, ...options.compat },
    mcpServer: options.mcpServer ?? config.mcpServer,
    appGateway: { ...config.appGateway, ...options.appGateway },
    hook: (options.hook ?? []).map((entry, at) =>
      Value.Parse(hookEntry, { name: `hook-${at}`, module: 'moderation', ...entry }),
    ),
    unsupportedTools: options.unsupportedTools ?? config.unsupportedTools,
    llama: { ...config.llama, loadMs: modelLoadMs, ...options.llama },
    onnx: { ...config.onnx, loadMs: modelLoadMs },
    installer: { ...config.installer, ...options.installer },
    retrieval: { ...config.retrieval, ...options.retrieval },
    flite: { ...config.flite, ...options.flite },
    files: { ...config.files, ...options.files },
    speech: { ...config.speech, ...options.speech },
    docs: { ...config.docs, ...options.docs },
    console: { ...config.console, ...options.console },
    usage: { ...config.usage, ...options.usage },
    metrics: { ...config.metrics, ...options.metrics },
    groups: { ...config.groups, ...options.groups },
    engine: (options.engine ?? config.engine).map((entry, at) => ({
      ...engineDefaults,
      name: `engine-${at}`,
      ...entry,
    })) as Config['engine'],
  }
}

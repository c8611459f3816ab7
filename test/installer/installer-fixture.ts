import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { installRuntime } from '#install-packages.ts'
import { createInstaller, type Installer } from '#installer/create-installer.ts'
import { installerEndpoints } from '#installer/endpoints.ts'
import type { DownloadStatus } from '#installer/installer.ts'
import { createSources } from '#installer/sources/source.ts'
import type { Download } from '#installer/store.ts'
import { createTransfer } from '#installer/transfer/transfer.ts'
import { createJobs, type JobTimings } from '#jobs/jobs.ts'
import { localRuntimes } from '#local-runtimes.ts'
import { configuredUpstreams } from '#models/upstreams.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { createTestApp } from '#test/support/endpoints.ts'
import { eventually } from '#test/support/eventually.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { fetchTransport } from '#test/support/transport.ts'

/** A machine with any number of workers that install models, and a host that serves them. */
export type InstallerFixture = {
  readonly database: TestDatabase
  /** The folder of installed models. */
  readonly folder: string
  readonly origin: ModelOrigin
  /** The current users of models, as sentences. */
  readonly uses: Map<string, string[]>
  /** Starts a worker; a front worker runs no downloads. */
  open(options?: OpenOptions): Promise<InstallerWorker>
  /** A worker that runs no downloads. */
  readonly frontWorker: InstallerWorker
  close(): Promise<void>
}

type OpenOptions = { settings?: Partial<Config['installer']>; isFrontWorker?: boolean }

export type InstallerWorker = {
  readonly installer: Installer
  /** The number of model change notifications. */
  readonly refreshes: () => number
  send(how: string, body?: unknown, who?: Caller): Promise<Answer>
  /** The event stream of a download. */
  follow(id: string): Promise<Response>
  /** Starts an installation; returns its record. */
  install(body: unknown): Promise<Record<string, unknown>>
  until(id: unknown, status: DownloadStatus): Promise<Download>
  close(): Promise<void>
}

type Caller = 'admins' | 'users' | 'anonymous'
export type Answer = { readonly status: number; readonly body: Record<string, unknown> }

const secret = 'a secret that only the tests know, 32+'
/** Only processes that are killed have short leases. */
const jobTimes: Partial<JobTimings> = { pollMs: 40 }
const now = () => new Date()

export async function startInstallerFixture(
  settings: Partial<Config['installer']> = {},
  upstreamUrl = 'http://127.0.0.1:1/v1',
): Promise<InstallerFixture> {
  const database = await openTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-models-'))
  const origin = await startModelOrigin()
  const uses = new Map<string, string[]>()
  const opened = new Set<InstallerWorker>()

  async function open(options: OpenOptions = {}): Promise<InstallerWorker> {
    const process = await openProcess({
      database,
      folder,
      uses,
      upstreamUrl,
      isFrontWorker: options.isFrontWorker === true,
      settings: { ...nearby(origin.url), ...settings, ...options.settings },
    })
    opened.add(process)
    return {
      ...process,
      async close() {
        if (opened.delete(process)) await process.close()
      },
    }
  }
  const front = await open({ isFrontWorker: true })
  return {
    database,
    folder,
    origin,
    uses,
    open,
    frontWorker: front,
    async close() {
      for (const process of opened) await process.close()
      await origin.stop()
      await database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Settings for hosts on this machine, with short backoffs. */
function nearby(hubUrl: string): Partial<Config['installer']> {
  return {
    hubUrl,
    hosts: ['*'],
    ports: [],
    privateHosts: true,
    reserveBytes: 0,
    attemptsMax: 3,
    backoffMs: 5,
    answerMs: 60_000,
    stallMs: 60_000,
  }
}

type InstallerFolders = {
  database: TestDatabase
  folder: string
  uses: Map<string, string[]>
  upstreamUrl: string
  isFrontWorker: boolean
  settings: Partial<Config['installer']>
}

async function openProcess(place: InstallerFolders): Promise<InstallerWorker> {
  const { database, folder } = place
  const config = loadConfig({
    JWT_SECRET: secret,
    PORT: '0',
    SLUICE_UPSTREAM_URL: place.upstreamUrl,
  })
  const settings = { ...config.installer, ...place.settings }
  const jobs = await createJobs({ database, log: quietLog, timings: jobTimes })
  const outside = { fetch, resolve: resolveHost }
  let refreshes = 0
  const installer = await createInstaller({
    settings,
    folder,
    database,
    now,
    log: quietLog,
    heartbeatMs: 200,
    jobs: place.isFrontWorker ? { ...jobs, process: () => ({ stop() {} }) } : jobs,
    resolve: createSources(settings, outside),
    transferFile: createTransfer(settings, outside),
    transport: fetchTransport,
    findUpstream: (name) =>
      configuredUpstreams(config).find(({ upstream }) => upstream.name === name)?.upstream,
    uses: async (name) => place.uses.get(name) ?? [],
    runtimes: { list: () => localRuntimes({ ...config, data: folder }), install: installRuntime },
    refreshModels: () => {
      refreshes += 1
    },
  })
  const audit = createAudit({ database, now })
  const auth = await createAuth({ config, database, audit, log: quietLog, now, fetch })
  const app = createTestApp(installerEndpoints({ installer, config }), {
    auth,
    config,
  }).listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}/v1/model-installer`
  return {
    ...calls(url, installer),
    installer,
    refreshes: () => refreshes,
    async close() {
      await app.stop(true)
      await jobs.close()
      await installer.close()
      await auth.close()
    },
  }
}

function calls(url: string, { downloads }: Installer) {
  async function send(how: string, json?: unknown, who: Caller = 'admins'): Promise<Answer> {
    const [method = 'GET', path = ''] = how.split(' ')
    const answer = await fetch(url + path, {
      method,
      headers: headersOf(who),
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    return { status: answer.status, body: Object(await answer.json()) }
  }
  return {
    send,
    follow: (id: string) =>
      fetch(`${url}/downloads/${id}/events`, { headers: headersOf('admins') }),
    async install(body: unknown): Promise<Record<string, unknown>> {
      const answer = await send('POST /downloads', body)
      if (answer.status !== 202) throw new Error(JSON.stringify(answer))
      return answer.body
    },
    async until(id: unknown, status: DownloadStatus): Promise<Download> {
      let seen = await downloads.find(String(id))
      await eventually(`the download is ${status}`, async () => {
        seen = await downloads.find(String(id))
        if (seen.status === status) return true
        if (seen.finishedAt === null) return false
        throw new Error(`it is ${seen.status}: ${JSON.stringify(seen.error)}`)
      })
      return seen
    },
  }
}

function headersOf(who: Caller): Record<string, string> {
  if (who === 'anonymous') return {}
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { sub: `one of ${who}`, groups: [who], iat: nowS, exp: nowS + 3_600 }
  return { authorization: `Bearer ${signWithSecret(secret, { claims })}` }
}

/** Random bytes with a GGUF header. */
export function ggufOf(bytes: number): Uint8Array {
  const content = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at += 65_536) {
    crypto.getRandomValues(content.subarray(at, Math.min(bytes, at + 65_536)))
  }
  content.set(new TextEncoder().encode('GGUF'))
  return content
}

export function sha256Of(content: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex')
}

/** Status and error code. */
export function errorCodeOf({ status, body }: Answer): string {
  return `${status} ${Object(body['error']).code}`
}

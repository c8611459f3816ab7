import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { userIdOf } from '#auth/principal.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { createReceiver } from '#files/content/receive.ts'
import { fileEndpoints } from '#files/file-endpoints.ts'
import type { FileChange, FileHooks, NewFile } from '#files/files.ts'
import { folderEndpoints } from '#files/folder-endpoints.ts'
import { listingEndpoints } from '#files/listing/endpoints.ts'
import { fileShareEndpoints } from '#files/shares/endpoints.ts'
import { createShares, type Shares } from '#files/shares/shares.ts'
import { createFileSweep } from '#files/trash/trash.ts'
import { createFiles, type Files } from '#files/tree.ts'
import { uploadPartsEndpoints } from '#files/uploads/endpoints.ts'
import { createUploads } from '#files/uploads/uploads.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { createS3Storage, type S3Settings } from '#storage/s3.ts'
import type { Storage } from '#storage/storage.ts'
import { createTestApp } from './endpoints.ts'
import { fixedSettings } from './fixed-settings.ts'
import { signWithSecret } from './identity-provider.ts'
import { quietLog } from './quiet-log.ts'

/** Files, folders and shares on a real port, without uploads over HTTP. */
export type FileGateway = {
  readonly url: string
  readonly files: Files
  readonly shares: Shares
  readonly storage: Storage
  readonly storageFolder: string
  /** The changes that the hooks have received. */
  readonly changes: FileChange[]
  send(who: Person, path: string, options?: SendOptions): Promise<ApiResponse>
  /** Creates a file without an upload over HTTP and returns its id. */
  upload(who: Person, name: string, file?: Partial<NewFile> & { text?: string }): Promise<string>
  /** Creates a folder over HTTP and returns its id. */
  folder(who: Person, name: string, folderId?: string | null): Promise<string>
  openai(who: Person): OpenAI
  share(who: Person, path: string, principal: object, role: string): Promise<string>
  /** Advances the clock. */
  pass(ms: number): void
  /** Runs enough sweeps to include a full scan. */
  sweep(): Promise<void>
  stop(): Promise<void>
}

export type Person = { readonly subject: string; readonly groups: readonly string[] }

type SendOptions = { method?: string; json?: unknown; headers?: Record<string, string> }

export type ApiResponse = {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

const secret = 'a secret that only the tests know, 32+'
const sweepsPerFullScan = 10

export function principalOf({ subject, groups }: Person): RequestPrincipal {
  return { userId: userIdOf(subject), groups }
}

export async function startFileGateway(
  database: Database,
  options: {
    files?: Partial<Config['files']>
    hooks?: Partial<FileHooks>
    /** Shares the storage folder with another gateway. */
    folder?: string
    /** Contents are stored here; the folder has unfinished ones. */
    s3?: S3Settings | undefined
  } = {},
): Promise<FileGateway> {
  const loaded = loadConfig({ JWT_SECRET: secret, PORT: '0' })
  const config = { ...loaded, files: { ...loaded.files, ...options.files } }
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log: quietLog,
    now,
    fetch,
  })
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'sluice-files-'))
  const storage =
    options.s3 === undefined
      ? await createDiskStorage({ folder, now })
      : await createS3Storage({ settings: options.s3, folder, now })
  const changes: FileChange[] = []
  const hooks: FileHooks = {
    async changed(_, change) {
      changes.push(change)
    },
    async joinCollections() {},
    ...options.hooks,
  }
  const settings = fixedSettings(config)
  const files = createFiles({ database, storage, settings, limits: config.files, hooks, now })
  const shares = createShares({ database, now })
  const receiver = createReceiver({ files, storage, settings, config })
  const uploads = createUploads({ database, files, storage, settings, receiver, now })
  const endpoints = [
    ...listingEndpoints({ files }),
    ...fileEndpoints({ files }),
    ...folderEndpoints({ files }),
    ...fileShareEndpoints({ shares, settings }),
    ...uploadPartsEndpoints({ uploads, receive: receiver.receive }),
  ]
  const app = createTestApp(endpoints, { auth, config }).listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}`
  const send: FileGateway['send'] = (who, path, how) => sendTo(url + path, { ...how, who, now })
  const sweep = createFileSweep({ database, storage, settings, hooks, log: quietLog, now })
  return {
    url,
    files,
    shares,
    storage,
    changes,
    send,
    storageFolder: folder,
    upload: async (who, name, file = {}) =>
      (await files.create(principalOf(who), await newFile(storage, name, file))).id,
    folder: async (who, name, folderId = null) =>
      idOf(await send(who, '/v1/folders', { json: { name, folder_id: folderId } })),
    openai: (who) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey: tokenOf(who, now()), maxRetries: 0 }),
    share: async (who, path, principal, role) =>
      idOf(await send(who, `${path}/shares`, { json: { principal, role } })),
    pass(ms) {
      offsetMs += ms
    },
    async sweep() {
      for (let sweeps = 0; sweeps < sweepsPerFullScan; sweeps++) await sweep()
    },
    async stop() {
      await app.stop(true)
      await auth.close()
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function newFile(
  storage: Storage,
  name: string,
  { text = name, ...fields }: Partial<NewFile> & { text?: string },
): Promise<NewFile> {
  return {
    name,
    folderId: null,
    mimeType: 'text/plain',
    attributes: {},
    purpose: 'user_data',
    collections: [],
    lifetimeS: null,
    onConflict: 'fail',
    content: await storage.put(bytesOf(text), { bytesMax: 1_000_000 }),
    ...fields,
  }
}

async function* bytesOf(text: string) {
  yield Buffer.from(text)
}

async function sendTo(
  url: string,
  { who, now, json, headers, method }: SendOptions & { who: Person; now: () => Date },
): Promise<ApiResponse> {
  const response = await fetch(url, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${tokenOf(who, now())}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
  })
  return { status: response.status, body: Object(await response.json()), headers: response.headers }
}

function tokenOf({ subject, groups }: Person, now: Date): string {
  const nowS = Math.floor(now.getTime() / 1_000)
  const claims = { sub: subject, groups: [...groups], iat: nowS, exp: nowS + 3_600 }
  return signWithSecret(secret, { claims })
}

function idOf({ status, body }: ApiResponse): string {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return String(body['id'])
}

/** `200`, or `409 name_conflict`: the error code follows. */
export function outcome({ status, body }: ApiResponse): string {
  return status < 300 ? String(status) : `${status} ${Object(body['error']).code}`
}

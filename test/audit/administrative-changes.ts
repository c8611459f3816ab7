import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { ggufOf } from '#test/installer/installer-fixture.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'

type Sent = {
  readonly status: number
  readonly requestId: string
  readonly body: JsonObject
}

/** A body of JSON, or the bytes of an image. */
export type Body = JsonObject | Uint8Array<ArrayBuffer>

export type Administration = {
  readonly gateway: Gateway
  send(bearer: string, operation: string, body?: Body): Promise<Sent>
  /** As an administrator; throws for a refusal. */
  prepare(operation: string, body?: Body): Promise<JsonObject>
  tokenOf(subject: string, group?: string): Promise<string>
  readonly origin: ModelOrigin
  /** A reindex that is completed, and one that is queued. */
  readonly reindexes: { readonly completed: string; readonly queued: string }
  stop(): Promise<void>
}

export const svg = new TextEncoder().encode(
  '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>',
)

const installed = ['one', 'two', 'org/one', 'org/two']

/** A gateway with installed models and reindexes, whose jobs no longer run: nothing else changes. */
export async function startAdministration(): Promise<Administration> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-audit-'))
  const origin = await startModelOrigin()
  const gateway = await startGateway({
    environment: { SLUICE_DATA: folder },
    upstream: [{ url: 'http://127.0.0.1:1/v1' }],
    model: [{ name: 'writer' }],
    installer: { hosts: ['*'], ports: [], privateHosts: true, reserveBytes: 0 },
  })
  const tokenOf = (subject: string, group = 'admins') => gateway.token([group], subject)
  const send: Administration['send'] = async (bearer, operation, body) => {
    const [method = '', path = ''] = operation.split(' ')
    const isImage = body instanceof Uint8Array
    const response = await fetch(gateway.url + path, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': isImage ? 'image/svg+xml' : 'application/json',
      },
      ...(body === undefined ? {} : { body: isImage ? body : JSON.stringify(body) }),
    })
    return {
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? '',
      body: asRecord(parseJson(await response.text())),
    }
  }
  const prepare: Administration['prepare'] = async (operation, body) => {
    const sent = await send(await tokenOf('preparing'), operation, body)
    if (sent.status >= 300) throw new Error(`${operation}: ${JSON.stringify(sent)}`)
    return sent.body
  }
  const until = (path: string, status: string) =>
    eventually(`${path} is ${status}`, async () => {
      return (await prepare(`GET ${path}`))['status'] === status
    })

  for (const name of installed) {
    const model = origin.put(`/${name.replace('/', '-')}.gguf`, ggufOf(2_000))
    const started = await prepare('POST /v1/model-installer/downloads', { model, name })
    await until(`/v1/model-installer/downloads/${started['download_id']}`, 'completed')
  }
  const reindex = async (name: string) => {
    const { id } = await prepare('POST /v1/collections', { name })
    const started = await prepare('POST /v1/embeddings/reindex', {
      embedding_model: 'local-hash',
      chunking: { max_tokens: 300, overlap_tokens: 0 },
      collections: [id],
    })
    return String(started['id'])
  }
  const completed = await reindex('completed')
  await until(`/v1/embeddings/reindex/${completed}`, 'completed')
  await gateway.deps.jobs.close()
  const queued = await reindex('queued')
  return {
    gateway,
    send,
    prepare,
    tokenOf,
    origin,
    reindexes: { completed, queued },
    async stop() {
      await gateway.stop()
      await origin.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

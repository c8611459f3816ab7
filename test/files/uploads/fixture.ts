import { afterAll, beforeAll, describe } from 'bun:test'
import type OpenAI from 'openai'
import { toFile } from 'openai'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  type ApiResponse,
  type FileGateway,
  type Person,
  startFileGateway,
} from '#test/support/file-gateway.ts'
import { s3Settings } from '#test/support/s3-server.ts'
import { ann } from '../fixture.ts'

export const bytesMax = 3_000_000

const storages = [
  { kind: 'the data folder', s3: undefined, isThere: true },
  { kind: 'S3', s3: s3Settings, isThere: s3Settings !== undefined },
]

/** Two replicas with one database and one storage, and what the tests do with uploads. */
export type Uploading = {
  readonly database: TestDatabase
  readonly gateway: FileGateway
  readonly replica: FileGateway
  /** Another replica whose users may have this many files. */
  startReplica(perOwnerMax: number): Promise<FileGateway>
  openUpload(content: Buffer, fields?: object): Promise<OpenAI.Uploads.Upload>
  sendPart(id: string, content: Buffer, through?: FileGateway): Promise<string>
  post(path: string, json: unknown, who?: Person): Promise<ApiResponse>
  complete(id: string, partIds: string[], more?: object): Promise<ApiResponse>
  isStored(content: Buffer): Promise<boolean>
}

/** Runs the tests with each storage. */
export function describeUploads(title: string, tests: (uploading: Uploading) => void): void {
  for (const { kind, s3, isThere } of storages) {
    describe.skipIf(!isThere)(`${title} in ${kind}`, () => {
      const uploading: Uploading = Object.create(null)
      beforeAll(async () => {
        const database = await openTestDatabase()
        const gateway = await startFileGateway(database, { s3, files: { bytesMax } })
        const startReplica = (perOwnerMax?: number) =>
          startFileGateway(database, {
            s3,
            folder: gateway.storageFolder,
            files: { bytesMax, ...(perOwnerMax === undefined ? {} : { perOwnerMax }) },
          })
        const replica = await startReplica()
        const post: Uploading['post'] = (path, json, who = ann) =>
          gateway.send(who, `/v1/uploads${path}`, { json })
        Object.assign(uploading, {
          database,
          gateway,
          replica,
          startReplica,
          post,
          openUpload: (content, fields = {}) =>
            gateway.openai(ann).uploads.create({
              filename: 'Report.txt',
              purpose: 'assistants',
              bytes: content.length,
              mime_type: 'application/pdf',
              ...fields,
            }),
          async sendPart(id, content, through = gateway) {
            const data = await toFile(content, 'part')
            return (await through.openai(ann).uploads.parts.create(id, { data })).id
          },
          complete: (id, partIds, more = {}) =>
            post(`/${id}/complete`, { part_ids: partIds, ...more }),
          isStored: (content) => gateway.storage.has(hashOf('sha256', content)),
        } satisfies Uploading)
      })
      afterAll(async () => {
        await uploading.replica.stop()
        await uploading.gateway.stop()
        await uploading.database.close()
      })
      tests(uploading)
    })
  }
}

export function hashOf(algorithm: 'md5' | 'sha256', content: Uint8Array): string {
  return new Bun.CryptoHasher(algorithm).update(content).digest('hex')
}

export function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'no rejection',
    (error) => error,
  )
}

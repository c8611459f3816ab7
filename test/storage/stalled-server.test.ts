import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createS3Storage } from '#storage/s3.ts'
import type { Storage } from '#storage/storage.ts'

const sha256 = 'a'.repeat(64)
const folder = mkdtempSync(join(tmpdir(), 'sluice-storage-'))
let server: Server
let storage: Storage
/** What the server sends before it stalls. */
let beginning = ''
const sockets = new Set<Socket>()

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      // A look whether the object exists is answered.
      const isHead = String(bytes).startsWith('HEAD ')
      if (beginning !== '') socket.write(isHead ? foundHead : beginning)
    })
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const { port } = server.address() as { port: number }
  storage = await createS3Storage({
    settings: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket: 'bucket',
      region: 'us-east-1',
      accessKeyId: 'key',
      secretAccessKey: 'secret',
      prefix: '',
      requestMs: 100,
    },
    folder,
    now: () => new Date(),
  })
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

const foundHead = 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\netag: "a"\r\n\r\n'

async function* oneByte() {
  yield new Uint8Array(1)
}

test.each<[string, () => Promise<unknown>]>([
  ['a write', () => storage.put(oneByte(), { bytesMax: 1 })],
  ['a read', () => storage.read(sha256)],
  ['a look', () => storage.has(sha256)],
  ['a removal', () => storage.remove(sha256)],
  ['a check', () => storage.ping()],
])('%s fails at a server that accepts and never responds', async (_what, work) => {
  await expect(work()).rejects.toThrow('The file storage is unavailable.')
  expect(readdirSync(folder)).toEqual([])
})

test('a content that stops arriving fails its reader', async () => {
  beginning = `${foundHead}${'x'.repeat(1_000)}`
  const content = await storage.read(sha256)
  await expect(new Response(content).bytes()).rejects.toThrow('did not respond in time')
})

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { renderDownload } from '#installer/record.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  errorCodeOf,
  type InstallerFixture,
  type InstallerWorker,
  startInstallerFixture,
} from './installer-fixture.ts'

/** An upstream that downloads models itself, like Ollama; tests write its progress lines. */
type Pulling = {
  readonly asked: unknown
  line(line: object): Promise<void>
  end(): Promise<void>
  readonly left: () => boolean
}

let fixture: InstallerFixture
let worker: InstallerWorker
const pulls: Pulling[] = []
/** The statuses of the next requests; 200 when empty. */
const refusals: number[] = []
let requests = 0
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    if (new URL(request.url).pathname !== '/api/pull') return new Response('', { status: 404 })
    requests++
    const refusal = refusals.shift()
    if (refusal !== undefined) return new Response('no', { status: refusal })
    const asked: unknown = await request.json()
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    let hasLeft = false
    request.signal.addEventListener('abort', () => {
      hasLeft = true
    })
    writer.closed.catch(() => {})
    pulls.push({
      asked,
      line: (line) => writer.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`)),
      end: () => writer.close(),
      left: () => hasLeft,
    })
    return new Response(readable, { headers: { 'content-type': 'application/x-ndjson' } })
  },
})

beforeAll(async () => {
  fixture = await startInstallerFixture({ backoffMs: 1 }, `http://127.0.0.1:${server.port}/v1`)
  worker = await fixture.open()
})
afterAll(async () => {
  await fixture.close()
  await server.stop(true)
})

async function begin(model: string): Promise<{ id: string; pull: Pulling }> {
  const count = pulls.length
  const { download_id: id } = await worker.install({ model, upstream: 'default' })
  return { id: String(id), pull: await nextPull(count) }
}

async function nextPull(count: number): Promise<Pulling> {
  await eventually('the upstream received the request', () => pulls.length > count)
  const pull = pulls[count]
  if (pull === undefined) throw new Error('no request')
  await pull.line({ status: 'pulling manifest' })
  return pull
}

const find = (id: string) => worker.installer.downloads.find(id)
const one = 'sha256:1111'
const two = 'sha256:2222'

test('an upstream downloads a model, and its progress lines become the progress', async () => {
  const refreshed = fixture.frontWorker.refreshes()
  const { id, pull } = await begin('llama3.2:1b')
  expect(pull.asked).toEqual({ model: 'llama3.2:1b', stream: true })
  await pull.line({ status: 'pulling 1111', digest: one, total: 1_000, completed: 400 })
  await pull.line({ status: 'pulling 2222', digest: two, total: 50 })
  await eventually('the files are known', async () => (await find(id)).files.length === 2)
  expect(renderDownload(await find(id))).toMatchObject({
    model: 'default/llama3.2:1b',
    status: 'downloading',
    source: 'upstream:default/llama3.2:1b',
    bytes_total: 1_050,
    bytes_completed: 400,
  })
  // Progress that the upstream takes back is ignored.
  await pull.line({ status: 'pulling 1111', digest: one, total: 1_000, completed: 100 })
  await pull.line({ status: 'pulling 2222', digest: two, total: 50, completed: 50 })
  await eventually(
    'the second file is complete',
    async () => (await find(id)).bytesCompleted === 450,
  )
  await pull.line({ status: 'pulling 1111', digest: one, total: 1_000, completed: 1_000 })
  await pull.line({ status: 'verifying sha256 digest' })
  await eventually('it verifies', async () => (await find(id)).status === 'verifying')
  await pull.line({ status: 'success' })
  const ended = await worker.until(id, 'completed')
  expect(ended.bytesCompleted).toBe(1_050)
  await eventually('the model list is refreshed', () => fixture.frontWorker.refreshes() > refreshed)
  expect(await worker.installer.models.list()).toEqual([])
})

test('an interrupted pull is retried', async () => {
  const { id, pull } = await begin('broken')
  await pull.line({ status: 'pulling 1111', digest: one, total: 1_000, completed: 400 })
  const count = pulls.length
  await pull.end()
  const again = await nextPull(count)
  await again.line({ status: 'success' })
  const { bytesCompleted } = await worker.until(id, 'completed')
  expect(bytesCompleted).toBe(400)
})

test('an error of the upstream fails the download with its message', async () => {
  const { id, pull } = await begin('unknown')
  await pull.line({ error: 'pull model manifest: file does not exist' })
  expect((await worker.until(id, 'failed')).error).toEqual({
    code: 'not_found',
    message: 'The upstream reported: pull model manifest: file does not exist',
  })
  const second = await begin('unlucky')
  await second.pull.line({ error: `no route from ${server.url.host} to the registry` })
  const { error } = await worker.until(second.id, 'failed')
  expect(error?.code).toBe('pull_failed')
  expect(error?.message).not.toContain(String(server.port))
})

test.each([400, 403, 404, 405, 409])('status %d of a pull is final', async (status) => {
  refusals.push(status)
  const before = requests
  const { download_id: id } = await worker.install({ model: `no-${status}`, upstream: 'default' })
  const { error } = await worker.until(String(id), 'failed')
  expect(error?.message).toBe(
    `The upstream "default" refused /api/pull with status ${status}; only Ollama servers download models. See its url in [[upstream]], or SLUICE_UPSTREAM_URL.`,
  )
  expect(requests).toBe(before + 1)
})

test.each([408, 425, 429, 500])('status %d of a pull is retried', async (status) => {
  refusals.push(status)
  const before = requests
  const { id, pull } = await begin(`busy-${status}`)
  await pull.line({ status: 'success' })
  await worker.until(id, 'completed')
  expect(requests).toBe(before + 2)
})

test('pausing and cancelling end the request', async () => {
  const { id, pull } = await begin('stopped')
  const count = pulls.length
  expect((await fixture.frontWorker.send(`POST /downloads/${id}/pause`)).body['status']).toBe(
    'paused',
  )
  await eventually('the upstream notices the disconnect', pull.left)
  await fixture.frontWorker.send(`POST /downloads/${id}/resume`)
  const again = await nextPull(count)
  expect((await fixture.frontWorker.send(`POST /downloads/${id}/cancel`)).body['status']).toBe(
    'cancelled',
  )
  await eventually('the upstream notices the disconnect', again.left)
})

test('an unconfigured upstream is rejected', async () => {
  const answer = await worker.send('POST /downloads', { model: 'x', upstream: 'elsewhere' })
  expect(errorCodeOf(answer)).toBe('422 bad_source')
})

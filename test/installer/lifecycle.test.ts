import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import type { OriginQuestion } from '#test/support/model-origin.ts'
import {
  errorCodeOf,
  ggufOf,
  type InstallerFixture,
  type InstallerWorker,
  sha256Of,
  startInstallerFixture,
} from './installer-fixture.ts'

let fixture: InstallerFixture
let worker: InstallerWorker

beforeAll(async () => {
  fixture = await startInstallerFixture({ downloadsMax: 1, logLinesMax: 5 })
  worker = await fixture.open()
})
afterAll(() => fixture.close())

/** Starts the installation of a slow file and waits for some progress. */
async function begun(name: string) {
  const content = ggufOf(8_000_000)
  const pace = { bytes: 20_000, everyMs: 10 }
  const url = fixture.origin.put(`/files/${name}.gguf`, content, { pace })
  const request = { model: url, sha256: sha256Of(content) }
  const { download_id: id } = await worker.install(request)
  await eventually('it has made progress', async () => (await find(id)).bytesCompleted > 0)
  /** Ends the throttling; returns the ranges that are requested from now on. */
  const hurry = () => {
    fixture.origin.put(`/files/${name}.gguf`, content)
    const questions = fixture.origin.questions.length
    return () => fixture.origin.questions.slice(questions).flatMap(startOf)
  }
  return { id: String(id), content, request, hurry }
}

function startOf({ method, headers }: OriginQuestion): number[] {
  if (method !== 'GET') return []
  return [Number(/^bytes=(\d+)-/.exec(headers['range'] ?? 'bytes=0-')?.[1])]
}

const find = (id: unknown) => worker.installer.downloads.find(String(id))
const partial = (name: string) => join(fixture.folder, '.partial', name)

test('a pause stops the download, and a resume continues it', async () => {
  const { id, hurry, content } = await begun('paused')
  const paused = await fixture.frontWorker.send(`POST /downloads/${id}/pause`)
  expect(paused).toMatchObject({ status: 200, body: { status: 'paused', bytes_per_second: null } })
  await eventually('the connection is closed', () => fixture.origin.openConnections() === 0)
  expect((await fixture.frontWorker.send(`POST /downloads/${id}/pause`)).body['status']).toBe(
    'paused',
  )
  const { body } = await worker.send('GET /downloads')
  expect(body['data']).toContainEqual(
    expect.objectContaining({ download_id: id, status: 'paused' }),
  )
  const before = (await find(id)).bytesCompleted
  const asked = hurry()
  const resumed = await fixture.frontWorker.send(`POST /downloads/${id}/resume`)
  expect(resumed.status).toBe(200)
  const ended = await worker.until(id, 'completed')
  expect(ended).toMatchObject({ bytesCompleted: content.length, attempts: 2 })
  expect(Math.min(...asked())).toBeGreaterThanOrEqual(before)
})

test('a cancelled download keeps its data for the next one of the model', async () => {
  const { id, request, hurry } = await begun('kept')
  const cancelled = await fixture.frontWorker.send(`POST /downloads/${id}/cancel`)
  expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } })
  expect((await fixture.frontWorker.send(`POST /downloads/${id}/cancel`)).body['status']).toBe(
    'cancelled',
  )
  expect(errorCodeOf(await worker.send(`POST /downloads/${id}/resume`))).toBe(
    '409 download_terminal',
  )
  expect((await worker.send('GET /downloads')).body['data']).toEqual([])
  expect(readdirSync(partial('kept')).length).toBeGreaterThan(0)
  const before = (await find(id)).bytesCompleted
  const asked = hurry()
  const next = await worker.install(request)
  await worker.until(next['download_id'], 'completed')
  expect(Math.min(...asked())).toBeGreaterThanOrEqual(before)
})

test('a discarded download leaves no data', async () => {
  const { id } = await begun('discarded')
  expect((await fixture.frontWorker.send(`DELETE /downloads/${id}`)).body['status']).toBe(
    'cancelled',
  )
  expect(existsSync(partial('discarded'))).toBe(false)

  const second = await begun('discarded-later')
  await worker.send(`POST /downloads/${second.id}/cancel`)
  expect(existsSync(partial('discarded-later'))).toBe(true)
  expect((await worker.send(`DELETE /downloads/${second.id}`)).body['status']).toBe('cancelled')
  expect(existsSync(partial('discarded-later'))).toBe(false)
})

test('a queued download is paused, resumed and cancelled at once', async () => {
  const { id } = await begun('busy')
  const url = fixture.origin.put('/files/waiting.gguf', ggufOf(1_000))
  const { download_id: waiting } = await worker.install({ model: url })
  const act = (action: string) => worker.send(`POST /downloads/${waiting}/${action}`)
  expect((await act('pause')).body['status']).toBe('paused')
  expect((await act('resume')).body['status']).toBe('queued')
  expect((await act('cancel')).body['status']).toBe('cancelled')
  expect((await find(waiting)).attempts).toBe(0)
  await worker.send(`DELETE /downloads/${id}`)
})

test('the log holds the last lines and is deleted when the download ends', async () => {
  const { id } = await begun('logged')
  for (let times = 0; times < 6; times++) {
    await worker.send(`POST /downloads/${id}/pause`)
    await worker.send(`POST /downloads/${id}/resume`)
    await eventually('a worker started it again', async () => (await find(id)).attempts > times + 1)
  }
  await worker.send(`POST /downloads/${id}/pause`)
  const { body } = await fixture.frontWorker.send(`GET /downloads/${id}/logs`)
  expect(body).toMatchObject({ object: 'list', download_id: id })
  const seqs = (body['data'] as { seq: number }[]).map(({ seq }) => seq)
  const last = seqs.at(-1) ?? 0
  expect(seqs).toEqual([last - 4, last - 3, last - 2, last - 1, last])
  expect(body['next_seq']).toBe(last)
  const page = await fixture.frontWorker.send(
    `GET /downloads/${id}/logs?after_seq=${last - 2}&limit=1`,
  )
  expect((page.body['data'] as { seq: number }[]).map(({ seq }) => seq)).toEqual([last - 1])

  await worker.send(`DELETE /downloads/${id}`)
  expect(await fixture.frontWorker.send(`GET /downloads/${id}/logs`)).toMatchObject({
    status: 200,
    body: { data: [], next_seq: 0 },
  })
  expect(
    errorCodeOf(await fixture.frontWorker.send(`GET /downloads/${crypto.randomUUID()}/logs`)),
  ).toBe('404 not_found')
})

test('another worker streams its events, whose progress never decreases', async () => {
  const { id, content } = await begun('watched')
  const text = await readEvents(await fixture.frontWorker.follow(id)).whole()
  const events = text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      return { name, data: JSON.parse(data ?? '') }
    })
  expect(events.some(({ name }) => name === 'log')).toBe(true)
  const states = events.filter(({ name }) => name !== 'log').map(({ data }) => data)
  const bytes = states.map((state) => Number(state.bytes_completed))
  expect(bytes).toEqual(bytes.toSorted((a, b) => a - b))
  expect(states.length).toBeGreaterThan(1)
  expect(events.at(-1)).toMatchObject({
    name: 'done',
    data: { download_id: id, status: 'completed', bytes_completed: content.length },
  })
  const after = await readEvents(await fixture.frontWorker.follow(id)).whole()
  expect(after).toMatch(/^event: done\n/)
})

test('a stopping worker leaves its downloads to others', async () => {
  await worker.close()
  const first = await fixture.open()
  const content = ggufOf(8_000_000)
  const pace = { bytes: 20_000, everyMs: 10 }
  const url = fixture.origin.put('/files/handed.gguf', content, { pace })
  const { download_id: id } = await first.install({ model: url, sha256: sha256Of(content) })
  await eventually('it has made progress', async () => {
    return (await fixture.frontWorker.installer.downloads.find(String(id))).bytesCompleted > 0
  })
  await first.close()
  const left = await fixture.frontWorker.installer.downloads.find(String(id))
  expect(left.status).toBe('downloading')
  fixture.origin.put('/files/handed.gguf', content)
  const second = await fixture.open()
  const ended = await second.until(id, 'completed')
  expect(ended.bytesCompleted).toBe(content.length)
  expect(ended.attempts).toBe(2)
})

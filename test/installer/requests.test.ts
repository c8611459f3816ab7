import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { errorCodeOf, type InstallerFixture, startInstallerFixture } from './installer-fixture.ts'

let fixture: InstallerFixture

beforeAll(async () => {
  fixture = await startInstallerFixture()
})
afterAll(() => fixture.close())

const id = crypto.randomUUID()
const routes = [
  'GET /downloads',
  'POST /downloads',
  `GET /downloads/${id}`,
  `DELETE /downloads/${id}`,
  `GET /downloads/${id}/logs`,
  `GET /downloads/${id}/events`,
  `POST /downloads/${id}/cancel`,
  `POST /downloads/${id}/pause`,
  `POST /downloads/${id}/resume`,
  'GET /models',
  'DELETE /models/name',
  'DELETE /models/org/name',
  'POST /models/name/verify',
  'POST /models/org/name/verify',
  'GET /storage',
]

test.each(routes)('%s requires can_manage_models', async (how) => {
  expect((await fixture.frontWorker.send(how, undefined, 'anonymous')).status).toBe(401)
  const refused = await fixture.frontWorker.send(how, undefined, 'users')
  expect(errorCodeOf(refused)).toBe('403 permission_denied')
  expect(Object(refused.body['error']).message).toContain('can_manage_models')
})

test.each(routes.filter((how) => how.includes(id)))('%s: not found', async (how) => {
  expect(errorCodeOf(await fixture.frontWorker.send(how))).toBe('404 not_found')
  expect(errorCodeOf(await fixture.frontWorker.send(how.replace(id, 'no-id')))).toBe(
    '404 not_found',
  )
})

const url = 'https://models.example.com/tiny.gguf'
const sha256 = 'a'.repeat(64)

test.each<[string, unknown, string, string | null]>([
  ['no object', [], 'unprocessable', null],
  ['nothing', {}, 'unprocessable', 'model'],
  ['another type', { model: 1 }, 'unprocessable', 'model'],
  ['an empty name', { model: '' }, 'unprocessable', 'model'],
  ['a field that is none', { model: url, size: 1 }, 'unknown_field', 'size'],
  ['a source that is none', { model: url, source: 'ftp' }, 'unprocessable', 'source'],
  ['a path where the hub is meant', { model: '../secrets' }, 'bad_source', 'model'],
  ['a URL that is none', { model: 'https://', source: 'url' }, 'bad_source', 'model'],
  ['a short hash', { model: url, sha256: 'abc' }, 'unprocessable', 'sha256'],
  ['a hash of the hub', { model: 'org/name', sha256 }, 'unprocessable', 'sha256'],
  ['files of a URL', { model: url, files: ['*'] }, 'unprocessable', 'files'],
  ['no files', { model: 'org/name', files: [] }, 'unprocessable', 'files'],
  ['33 globs', { model: 'org/name', files: Array(33).fill('*') }, 'unprocessable', 'files'],
  ['a revision of a URL', { model: url, revision: 'main' }, 'unprocessable', 'revision'],
  [
    'an upstream that is not named',
    { model: 'x', source: 'upstream' },
    'unprocessable',
    'upstream',
  ],
  [
    'an upstream of the hub',
    { model: 'a/b', source: 'hub', upstream: 'x' },
    'unprocessable',
    'upstream',
  ],
  ['a name for an upstream', { model: 'x', upstream: 'x', name: 'y' }, 'unprocessable', 'name'],
  ['a name that climbs', { model: url, name: '../up' }, 'unprocessable', 'name'],
  ['a hidden name', { model: url, name: '.partial' }, 'unprocessable', 'name'],
  ['a name of three parts', { model: url, name: 'a/b/c' }, 'unprocessable', 'name'],
  ['a name of 97 characters', { model: url, name: 'n'.repeat(97) }, 'unprocessable', 'name'],
  ['a URL without a name', { model: 'https://models.example.com/' }, 'unprocessable', 'name'],
])('%s is rejected', async (_, body, code, param) => {
  const answer = await fixture.frontWorker.send('POST /downloads', body)
  expect(errorCodeOf(answer)).toBe(`422 ${code}`)
  expect(Object(answer.body['error']).param).toBe(param)
})

test('pages of log lines are validated', async () => {
  for (const query of ['after_seq=-1', 'after_seq=x', 'limit=0', 'limit=1001', 'limit=1.5']) {
    const answer = await fixture.frontWorker.send(`GET /downloads/${id}/logs?${query}`)
    expect([query, errorCodeOf(answer)]).toEqual([query, '422 unprocessable'])
  }
})

test('an unreachable source fails the request and leaves no download', async () => {
  const { origin } = fixture
  origin.put('/gone.gguf', new Uint8Array(10))
  origin.alwaysMisbehave('/gone.gguf', { kind: 'dropped' })
  const dropped = await fixture.frontWorker.send('POST /downloads', {
    model: `${origin.url}/gone.gguf`,
  })
  expect(errorCodeOf(dropped)).toMatch(/^50[24] resolve_failed$/)
  const absent = await fixture.frontWorker.send('POST /downloads', {
    model: `${origin.url}/none.gguf`,
  })
  expect(errorCodeOf(absent)).toBe('404 not_found')
  origin.put('/closed.gguf', new Uint8Array(10))
  origin.alwaysMisbehave('/closed.gguf', { kind: 'status', status: 401 })
  const closed = await fixture.frontWorker.send('POST /downloads', {
    model: `${origin.url}/closed.gguf`,
  })
  expect(errorCodeOf(closed)).toBe('424 source_auth_required')
  const local = await fixture.frontWorker.send('POST /downloads', {
    model: '/etc/passwd',
    source: 'local',
  })
  expect(errorCodeOf(local)).toBe('403 host_not_allowed')
  expect((await fixture.frontWorker.send('GET /downloads')).body).toEqual({
    object: 'list',
    data: [],
  })
})

test('actions are audited with their actor', async () => {
  const model = fixture.origin.put('/audited.gguf', new Uint8Array(10))
  const started = await fixture.frontWorker.install({ model })
  await fixture.frontWorker.send(`POST /downloads/${started['download_id']}/cancel`)
  const rows = await fixture.database.drizzle.execute(sql`
    select action from audit_entry where resource_id = ${String(started['download_id'])} order by id`)
  expect(rows.map(({ action }) => action)).toEqual([
    'model_download.start',
    'model_download.cancel',
  ])
})
